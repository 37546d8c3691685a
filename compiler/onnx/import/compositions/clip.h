// SPDX-License-Identifier: Apache-2.0
//
// A bound that is a number, as Clip has it, and Max and Min where they stand for PyTorch's clamp.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

enum class Bound { lower, upper };

/// `x`, and `bound` (of its shape) where `x` is not within it: there and at the bound itself no
/// gradient passes.
mlir::Value clipAtKnown(Builder &builder, mlir::Value x, mlir::Value bound, Bound side);

} // namespace trainc::nn
