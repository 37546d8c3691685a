// SPDX-License-Identifier: Apache-2.0
//
// ONNX TopK: the k largest or smallest elements along an axis, in order, and their indices. Each is
// found among those that are left, so that the work grows with k; the gradient of a value is its
// element's alone. NaN is larger than any number, as in PyTorch.
#include "compiler/onnx/compositions/extreme_index.h"

using namespace mlir;

namespace trainc::nn {

static constexpr int64_t kMost = 64; // elements: each costs a pass over the operand

namespace {

struct TopKOptions {
  int64_t count, axis;
  Extreme extreme;
};

} // namespace

static FailureOr<TopKOptions> topKOptions(OnnxNode &node) {
  RankedTensorType type = tensorType(node.input(0));
  FailureOr<int64_t> axis = axisOf(node, type.getRank(), -1);
  if (failed(axis))
    return failure();
  auto count = node.opset() < 10 ? SmallVector<int64_t>{node.integer("k", 0)} : node.integers(1);
  if (!count || count->size() != 1)
    return node.error("its k must be one number, known when the model is compiled");
  int64_t k = count->front(), size = type.getDimSize(*axis);
  if (k < 1 || k > size)
    return node.error("k is " + llvm::Twine(k) + ", expected 1 to " + llvm::Twine(size));
  if (k > kMost)
    return node.error("k is " + llvm::Twine(k) + ", the most that is supported is " +
                      llvm::Twine(kMost));
  return TopKOptions{k, *axis, node.integer("largest", 1) ? Extreme::largest : Extreme::smallest};
}

// What no element of a type is more extreme than from the other side.
static Value leastExtreme(Builder &builder, RankedTensorType type, Extreme extreme) {
  bool largest = extreme == Extreme::largest;
  if (isa<FloatType>(type.getElementType()))
    return builder.constant(largest ? -INFINITY : INFINITY, type);
  unsigned width = type.getElementTypeBitWidth();
  return builder.constant(DenseElementsAttr::get(type, largest ? APInt::getSignedMinValue(width)
                                                               : APInt::getSignedMaxValue(width)));
}

static OnnxResults importTopK(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  FailureOr<TopKOptions> options = topKOptions(node);
  if (failed(options))
    return failure();
  int64_t axis = options->axis;
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> one(type.getShape());
  one[axis] = 1;
  Value none = leastExtreme(builder, type, options->extreme), zero = builder.constant(0, type);
  Value index = indicesAlong(builder, x, axis);
  Value candidates, left = x;
  if (options->extreme == Extreme::smallest && isa<FloatType>(type.getElementType()))
    left = builder.select(builder.create<IsNaNOp>(x), none, x);
  SmallVector<Value> values, indices;
  for (int64_t i = 0; i < options->count; ++i) {
    Value found = extremeIndex(builder, left, axis, options->extreme, Tie::first, candidates);
    Value taken = builder.create<EqualOp>(index, builder.expand(found, axis, type.getShape()));
    Value value = builder.reduceSum(builder.select(taken, x, zero), axis);
    values.push_back(builder.reshape(value, one));
    indices.push_back(builder.reshape(found, one));
    Value others = builder.create<NotOp>(taken);
    candidates = candidates ? builder.create<AndOp>(candidates, others) : others;
    left = builder.select(taken, none, left);
  }
  if (values.size() == 1)
    return SmallVector<Value>{values[0], indices[0]};
  return SmallVector<Value>{builder.create<ConcatOp>(ValueRange(values), axis),
                            builder.create<ConcatOp>(ValueRange(indices), axis)};
}

static OnnxRegistration topK("TopK", 1, importTopK);

} // namespace trainc::nn
