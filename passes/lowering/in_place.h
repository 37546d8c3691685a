// SPDX-License-Identifier: Apache-2.0
//
// When a kernel may write an output over one of its inputs.
#pragma once

#include "dialects/kernel/kernel.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace trainc {

/// True where output `result` of the launch may lie in the memory of those
/// inputs for which `shares` holds: each is read at the same points at which the
/// output is written, and never after.
bool mayWriteOver(kernel::LaunchOp launch, kernel::FunctionOp callee, unsigned result,
                  llvm::function_ref<bool(mlir::Value)> shares);

} // namespace trainc
