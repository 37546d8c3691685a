// SPDX-License-Identifier: Apache-2.0
//
// Short names of the model's values, for identifiers in emitted code.
#pragma once

#include "dialects/names/node_name.h"

namespace trainc {

/// What is particular about a value's name: `ln_1_weight` of h.0.ln_1.weight, `d_mlp_act` of
/// gradient of h.0.mlp.act.
std::string lastParts(llvm::StringRef value);

/// What a kernel's code calls a value with this location: its role, `mean`, or what it is the
/// gradient of, `d_mlp_act`. Empty where the location tells neither.
std::string valueWord(mlir::Location location);

} // namespace trainc
