// SPDX-License-Identifier: Apache-2.0
//
// The elements of the gradients arena that a function writes.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// A part of the arena of form-buckets.
struct ElementRange {
  int64_t begin, end;
};

/// With the padding after them, ascending.
llvm::SmallVector<ElementRange> gradientRangesOf(mlir::func::FuncOp function);
int64_t gradientBytesOf(mlir::func::FuncOp function);

} // namespace trainc
