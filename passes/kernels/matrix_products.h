// SPDX-License-Identifier: Apache-2.0
//
// How a product of tensors can be done on matrices that lie in memory, strided.
#pragma once

#include "dialects/nn/library_step.h"

namespace trainc {

/// See nn::StepBuilder::product.
nn::StridedProduct stridedProduct(mlir::Value a, bool transposeA, mlir::Value b, bool transposeB,
                                  mlir::Value result);

/// See nn::StepBuilder::matrices.
nn::StridedBatch stridedBatch(llvm::ArrayRef<int64_t> batch,
                              llvm::ArrayRef<nn::BatchedMatrices> tensors);

} // namespace trainc
