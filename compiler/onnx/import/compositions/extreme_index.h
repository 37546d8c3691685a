// SPDX-License-Identifier: Apache-2.0
//
// Where the largest elements along a dimension are: what ArgMax, ArgMin, Hardmax and TopK share.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

enum class Extreme { largest, smallest };
enum class Tie { first, last };

/// The indices of the elements along `dimension`, in the shape of `x`, as i64.
inline mlir::Value indicesAlong(Builder &builder, mlir::Value x, int64_t dimension) {
  auto type = tensorType(x).clone(mlir::IntegerType::get(builder.op().getContext(), 64));
  return builder.create<IotaOp>(type, dimension);
}

/// What no number of the type is less extreme than.
inline mlir::Value leastExtreme(Builder &builder, mlir::RankedTensorType type, Extreme extreme) {
  const bool largest = extreme == Extreme::largest;
  if (mlir::isa<mlir::FloatType>(type.getElementType()))
    return builder.constant(largest ? -INFINITY : INFINITY, type);
  const unsigned width = type.getElementTypeBitWidth();
  const bool isUnsigned = type.getElementType().isUnsignedInteger();
  using llvm::APInt;
  APInt least = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  APInt most = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return builder.constant(mlir::DenseElementsAttr::get(type, largest ? least : most));
}

/// The index (i64, without `dimension`) of the largest or smallest element along `dimension`, of
/// several equal ones the first or last. NaN is larger and smaller than any number, as in PyTorch.
/// With `candidates`, of the shape of `x`, only those elements count: one at least in every row,
/// the others no more extreme than those.
inline mlir::Value extremeIndex(Builder &builder, mlir::Value x, int64_t dimension, Extreme extreme,
                                Tie tie = Tie::first, mlir::Value candidates = nullptr) {
  llvm::ArrayRef<int64_t> shape = tensorType(x).getShape();
  mlir::Value value = extreme == Extreme::largest ? builder.create<ReduceMaxOp>(x, dimension)
                                                  : builder.create<ReduceMinOp>(x, dimension);
  mlir::Value hit = builder.create<EqualOp>(x, builder.expand(value, dimension, shape));
  if (mlir::isa<mlir::FloatType>(tensorType(x).getElementType()))
    hit = builder.create<OrOp>(hit, builder.create<IsNaNOp>(x));
  if (candidates)
    hit = builder.create<AndOp>(hit, candidates);
  mlir::Value index = indicesAlong(builder, x, dimension);
  // What is not a hit has the index that wins only where it is one, so that known bounds are exact.
  double other = tie == Tie::first ? static_cast<double>(shape[dimension] - 1) : 0;
  mlir::Value hits = builder.select(hit, index, builder.constant(other, index.getType()));
  return tie == Tie::first ? builder.create<ReduceMinOp>(hits, dimension)
                           : builder.create<ReduceMaxOp>(hits, dimension);
}

} // namespace trainc::nn
