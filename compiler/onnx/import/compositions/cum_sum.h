// SPDX-License-Identifier: Apache-2.0
//
// Partial sums, as ONNX CumSum has them.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// Element i along a dimension becomes the sum of those up to i.
mlir::Value partialSums(Builder &builder, mlir::Value x, int64_t dimension);

} // namespace trainc::nn
