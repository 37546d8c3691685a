// SPDX-License-Identifier: Apache-2.0
//
// What the reductions share.
#include "dialects/nn/reduction.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

bool isReduction(Operation *op) {
  return isa_and_nonnull<ReduceSumOp, ReduceMaxOp, ReduceMinOp>(op);
}

LogicalResult inferReduction(std::optional<Location> location, Value x,
                             ArrayRef<int64_t> dimensions, SmallVectorImpl<Type> &types) {
  auto type = tensorType(x);
  int64_t previous = -1;
  for (int64_t dimension : dimensions) {
    if (dimension <= previous || dimension >= type.getRank())
      return emitOptionalError(location, "dimensions are increasing and within rank ",
                               type.getRank(), ", found ", dimension, " after ", previous);
    previous = dimension;
  }
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!llvm::is_contained(dimensions, i))
      shape.push_back(type.getDimSize(i));
  types.push_back(type.clone(shape));
  return success();
}

OnnxResults importReduction(OnnxNode &node, int64_t axesInputSince, Reduction reduce) {
  Value x = node.input(0);
  int64_t rank = tensorType(x).getRank();
  std::optional<SmallVector<int64_t>> axes = SmallVector<int64_t>();
  if (node.opset() >= axesInputSince ? node.hasInput(1) : node.hasAttribute("axes"))
    axes = node.opset() >= axesInputSince ? node.integers(1) : node.integers("axes");
  llvm::SmallBitVector reduced(rank);
  for (int64_t axis : *axes) {
    if (axis < -rank || axis >= rank)
      return node.error("axis " + llvm::Twine(axis) + " is out of range for rank " +
                        llvm::Twine(rank));
    reduced.set(axis < 0 ? axis + rank : axis);
  }
  if (axes->empty() && !node.integer("noop_with_empty_axes", 0))
    reduced.set();
  SmallVector<int64_t> dimensions(reduced.set_bits()), kept(tensorType(x).getShape());
  for (int64_t dimension : dimensions)
    kept[dimension] = 1;
  Value y = reduce(node.builder(), x, dimensions);
  return SmallVector<Value>{node.integer("keepdims", 1) ? node.builder().reshape(y, kept) : y};
}

std::vector<int64_t> reducedPlaces(ArrayRef<int64_t> shape, ArrayRef<int64_t> dimensions) {
  SmallVector<int64_t> own = computeStrides(shape), kept(shape.size(), 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;)
    if (!llvm::is_contained(dimensions, d))
      kept[d] = std::exchange(stride, stride * shape[d]);
  std::vector<int64_t> places(computeProduct(shape), 0);
  for (auto [i, place] : llvm::enumerate(places))
    for (size_t d = 0; d < shape.size(); ++d)
      place += static_cast<int64_t>(i) / own[d] % shape[d] * kept[d];
  return places;
}

Value buildRootOfSquares(Builder &builder, Value squares) {
  Type type = squares.getType();
  Value zero = builder.constant(0, type);
  Value isZero = builder.create<EqualOp>(squares, zero);
  // The root of what is not zero: where the selection does not take it, its gradient is finite.
  Value root = builder.create<SqrtOp>(builder.select(isZero, builder.constant(1, type), squares));
  return builder.select(isZero, zero, root);
}

Value buildNorm(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  Value squares = builder.reduceSum(builder.mul(x, x), dimensions);
  return buildRootOfSquares(builder, builder.named("sum_of_squares", squares));
}

static Value productAlong(Builder &builder, Value x, int64_t dimension) {
  int64_t size = tensorType(x).getDimSize(dimension);
  while (size > 1) {
    int64_t half = size / 2;
    Value front = builder.slice(x, dimension, 0, half);
    Value product = builder.mul(front, builder.slice(x, dimension, half, half));
    Value parts[] = {product, x};
    if (size % 2)
      parts[1] = builder.slice(x, dimension, size - 1, 1);
    x = size % 2 ? builder.create<ConcatOp>(ValueRange(parts), dimension) : product;
    size = half + size % 2;
  }
  if (size == 1)
    return x;
  SmallVector<int64_t> shape(tensorType(x).getShape()); // of no elements
  shape[dimension] = 1;
  return builder.constant(1, tensorType(x).clone(shape));
}

Value buildProduct(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  SmallVector<int64_t> kept;
  for (int64_t dimension = 0; dimension < tensorType(x).getRank(); ++dimension)
    if (!llvm::is_contained(dimensions, dimension))
      kept.push_back(tensorType(x).getDimSize(dimension));
  for (int64_t dimension : dimensions)
    x = productAlong(builder, x, dimension);
  return builder.reshape(x, kept);
}

Value buildExtremumGradient(Builder &builder, Value x, Value y, Value dy,
                            ArrayRef<int64_t> dimensions) {
  auto type = tensorType(x);
  Value hit = builder.create<EqualOp>(x, builder.expand(y, dimensions, type.getShape()));
  Value ties = builder.reduceSum(builder.cast(hit, type.getElementType()), dimensions);
  Value share = builder.expand(builder.div(dy, ties), dimensions, type.getShape());
  return builder.select(hit, share, builder.constant(0, type));
}

} // namespace trainc::nn
