// SPDX-License-Identifier: Apache-2.0
//
// Canonicalisation and removal of equal and dead operations, which several
// passes end with.
#pragma once

#include "mlir/IR/Operation.h"

namespace trainc {

/// Simplifies everything inside `root`; fails where no fixed point is found.
llvm::LogicalResult simplify(mlir::Operation *root);

} // namespace trainc
