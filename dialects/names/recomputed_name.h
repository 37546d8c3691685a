// SPDX-License-Identifier: Apache-2.0
//
// What is computed once more, for the backward pass: loc("recomputed"("mean"("h.0.ln_1"))), whose
// node is `recomputed h.0.ln_1` for nodeName (node_name.h).
#pragma once

#include "mlir/IR/Location.h"

namespace trainc {

/// What names of recomputed nodes begin with.
constexpr llvm::StringLiteral recomputedPrefix = "recomputed ";

/// The location of what recomputes what is computed at `location`.
mlir::Location recomputedLocation(mlir::Location location);

} // namespace trainc
