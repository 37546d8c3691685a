// SPDX-License-Identifier: Apache-2.0
//
// What the reductions share: the shape rule and the reading of ONNX's Reduce
// operators, whose axes moved from an attribute to an input.
#pragma once

#include "dialects/nn/onnx_node.h"

namespace trainc::nn {

/// nn.reduce_sum, nn.reduce_max or nn.reduce_min; false of no operation.
bool isReduction(mlir::Operation *op);

/// Type of `x` without `dimensions`; an error where they are not increasing or out of range.
mlir::LogicalResult inferReduction(std::optional<mlir::Location> location, mlir::Value x,
                                   llvm::ArrayRef<int64_t> dimensions,
                                   llvm::SmallVectorImpl<mlir::Type> &types);

using Reduction = llvm::function_ref<mlir::Value(Builder &, mlir::Value, llvm::ArrayRef<int64_t>)>;

/// Applies `reduce` over the node's axes, which are an input from opset `axesInputSince` on.
OnnxResults importReduction(OnnxNode &node, int64_t axesInputSince, Reduction reduce);

/// Gradient of a largest or smallest element: ties share evenly, as in PyTorch.
mlir::Value buildExtremumGradient(Builder &builder, mlir::Value x, mlir::Value y, mlir::Value dy,
                                  llvm::ArrayRef<int64_t> dimensions);

} // namespace trainc::nn
