// SPDX-License-Identifier: Apache-2.0
//
// Builds one kernel.function from one kernel.group.
#pragma once

#include "dialects/kernel/kernel.h"

namespace trainc {

struct BuiltKernel {
  kernel::FunctionOp function;           // detached
  llvm::SmallVector<mlir::Value> inputs; // of the launch: values from above the group
};

BuiltKernel buildKernel(kernel::GroupOp group);

/// Drops dimensions of size one and merges neighbours that all accesses cross with one
/// stride. The first `border` dimensions are rows (form row) or walked (form column).
void mergeDimensions(kernel::FunctionOp function, size_t border);

} // namespace trainc
