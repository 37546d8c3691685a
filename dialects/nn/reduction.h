// SPDX-License-Identifier: Apache-2.0
//
// What the reductions share: the shape rule and the reading of ONNX's Reduce
// operators, whose axes moved from an attribute to an input.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// nn.reduce_sum, nn.reduce_max or nn.reduce_min; false of no operation.
bool isReduction(mlir::Operation *op);

/// Type of `x` without `dimensions`; an error where they are not increasing or out of range.
mlir::LogicalResult inferReduction(std::optional<mlir::Location> location, mlir::Value x,
                                   llvm::ArrayRef<int64_t> dimensions,
                                   llvm::SmallVectorImpl<mlir::Type> &types);

using Reduction = llvm::function_ref<mlir::Value(Builder &, mlir::Value, llvm::ArrayRef<int64_t>)>;

/// Applies `reduce` over the node's axes, which are an input from opset `axesInputSince` on; over
/// none where `noop_with_empty_axes` says so.
OnnxResults importReduction(OnnxNode &node, int64_t axesInputSince, Reduction reduce);

/// For each element of a tensor, in order, the element of its reduction that it goes to.
std::vector<int64_t> reducedPlaces(llvm::ArrayRef<int64_t> shape,
                                   llvm::ArrayRef<int64_t> dimensions);

/// Combines the elements of `x` along `dimensions`, in row-major order. Reals are double until all
/// are combined; integers wrap.
template <typename Combine>
Tensor interpretReduction(const Tensor &x, mlir::RankedTensorType type,
                          llvm::ArrayRef<int64_t> dimensions, double initialReal,
                          int64_t initialInteger, Combine combine) {
  std::vector<int64_t> places = reducedPlaces(x.shape(), dimensions);
  if (mlir::isa<mlir::FloatType>(type.getElementType())) {
    std::vector<double> totals(type.getNumElements(), initialReal), values = x.reals();
    for (size_t i = 0; i < values.size(); ++i)
      totals[places[i]] = combine(totals[places[i]], values[i]);
    return Tensor::ofReals(type, totals);
  }
  std::vector<int64_t> totals(type.getNumElements(), initialInteger), values = x.integers();
  for (size_t i = 0; i < values.size(); ++i)
    totals[places[i]] = combine(totals[places[i]], values[i]);
  return Tensor::ofIntegers(type, totals);
}

/// The root of sums of squares; where such a sum is zero, its gradient is zero, too.
mlir::Value buildRootOfSquares(Builder &builder, mlir::Value squares);

/// The Euclidean norm of `x` along `dimensions`; its gradient at zero is zero, as in PyTorch.
mlir::Value buildNorm(Builder &builder, mlir::Value x, llvm::ArrayRef<int64_t> dimensions);

/// The product along `dimensions`: halves of each multiplied, until one element is left.
mlir::Value buildProduct(Builder &builder, mlir::Value x, llvm::ArrayRef<int64_t> dimensions);

/// Gradient of a largest or smallest element: ties share evenly, as in PyTorch.
mlir::Value buildExtremumGradient(Builder &builder, mlir::Value x, mlir::Value y, mlir::Value dy,
                                  llvm::ArrayRef<int64_t> dimensions);

} // namespace trainc::nn
