// SPDX-License-Identifier: Apache-2.0
//
// The entry functions as text: one line for each step, in order.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace trainc {

/// Of a module after lower-to-kernels: `plan/steps.txt` of the output folder.
std::string stepListText(mlir::ModuleOp module);

} // namespace trainc
