// SPDX-License-Identifier: Apache-2.0
//
// ONNX TopK: the k largest or smallest elements along an axis, in order, and their indices. Few are
// found one after the other among those that are left, so that the work grows with k. Of many the
// place of every element is counted: how many come before it, of equal ones those with a lower
// index. The gradient of a value is its element's alone. NaN is larger than any number, as in
// PyTorch.
#include "compiler/onnx/import/compositions/extreme_index.h"

using namespace mlir;

namespace trainc::nn {

static constexpr int64_t kFew = 32; // elements: each costs some passes over the operand

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
  int64_t k = node.integer("k", 0), size = type.getDimSize(*axis);
  if (node.opset() >= 10) {
    FailureOr<int64_t> count = node.knownInteger(1, "k");
    if (failed(count))
      return failure();
    k = *count;
  }
  if (k < 1 || k > size)
    return node.error("k is " + llvm::Twine(k) + ", expected 1 to " + llvm::Twine(size));
  return TopKOptions{k, *axis, node.integer("largest", 1) ? Extreme::largest : Extreme::smallest};
}

static OnnxResults oneByOne(Builder &builder, Value x, const TopKOptions &options) {
  int64_t axis = options.axis;
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> one(type.getShape());
  one[axis] = 1;
  Value none = leastExtreme(builder, type, options.extreme), zero = builder.constant(0, type);
  Value index = indicesAlong(builder, x, axis);
  Value candidates, left = x, isNumber, numbers;
  if (options.extreme == Extreme::smallest && isa<FloatType>(type.getElementType())) {
    left = builder.select(builder.create<IsNaNOp>(x), none, x);
    isNumber = builder.create<NotOp>(builder.create<IsNaNOp>(x));
    numbers = builder.reduceSum(builder.cast(isNumber, builder.op().getI64Type()), axis);
  }
  auto both = [&](Value a, Value b) { return a ? builder.create<AndOp>(a, b) : b; };
  SmallVector<Value> values, indices;
  for (int64_t i = 0; i < options.count; ++i) {
    Value allowed = candidates;
    if (isNumber) { // what is none comes after all infinities
      Value gone = builder.create<LessOrEqualOp>(
          numbers, builder.constant(static_cast<double>(i), numbers.getType()));
      gone = builder.expand(gone, axis, type.getShape());
      allowed = both(candidates, builder.create<OrOp>(isNumber, gone));
    }
    Value found = extremeIndex(builder, left, axis, options.extreme, Tie::first, allowed);
    Value taken = builder.create<EqualOp>(index, builder.expand(found, axis, type.getShape()));
    Value value = builder.reduceSum(builder.select(taken, x, zero), axis);
    values.push_back(builder.reshape(value, one));
    indices.push_back(builder.reshape(found, one));
    candidates = both(candidates, builder.create<NotOp>(taken));
    left = builder.select(taken, none, left);
  }
  if (values.size() == 1)
    return SmallVector<Value>{values[0], indices[0]};
  return SmallVector<Value>{builder.create<ConcatOp>(ValueRange(values), axis),
                            builder.create<ConcatOp>(ValueRange(indices), axis)};
}

// Along the last dimension of two: how many elements of a row come before each of it, i64.
static Value placesInOrder(Builder &builder, Value x, Extreme extreme) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  SmallVector<int64_t> pairs{shape[0], shape[1], shape[1]};
  Value mine = builder.broadcast(x, {0, 1}, pairs), other = builder.broadcast(x, {0, 2}, pairs);
  auto i64 = builder.op().getI64Type();
  Value index = builder.create<IotaOp>(RankedTensorType::get(pairs, i64), 1);
  Value otherIndex = builder.create<IotaOp>(RankedTensorType::get(pairs, i64), 2);
  Value larger = extreme == Extreme::largest ? other : mine;
  Value smaller = extreme == Extreme::largest ? mine : other;
  Value before = builder.create<GreaterOp>(larger, smaller);
  Value equal = builder.create<EqualOp>(mine, other);
  if (isa<FloatType>(tensorType(x).getElementType())) {
    Value isNaN = builder.create<IsNaNOp>(larger), isOtherNaN = builder.create<IsNaNOp>(smaller);
    Value isNumber = builder.create<NotOp>(isOtherNaN);
    before = builder.create<OrOp>(before, builder.create<AndOp>(isNaN, isNumber));
    equal = builder.create<OrOp>(equal, builder.create<AndOp>(isNaN, isOtherNaN));
  }
  Value earlier = builder.create<LessOp>(otherIndex, index);
  before = builder.create<OrOp>(before, builder.create<AndOp>(equal, earlier));
  return builder.reduceSum(builder.cast(before, i64), 2);
}

// Rows of two dimensions.
static std::pair<Value, Value> byCounting(Builder &builder, Value x, int64_t count,
                                          Extreme extreme) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t rows = shape[0], size = shape[1], all = rows * size;
  Type i64 = builder.op().getI64Type(), f64 = builder.op().getF64Type();
  auto type = RankedTensorType::get(shape, i64), resultType = type.clone({rows, count});
  auto inRow = [&](Value place) {
    Value row = builder.create<IotaOp>(tensorType(place), 0);
    return builder.add(builder.scale(row, static_cast<double>(size)), place);
  };
  Value target = builder.reshape(inRow(placesInOrder(builder, x, extreme)), all);
  Value index = builder.cast(builder.create<IotaOp>(type, 1), f64);
  Value sorted = builder.create<ScatterAddOp>(builder.constant(0, RankedTensorType::get(all, f64)),
                                              target, builder.reshape(index, all));
  sorted = builder.create<SliceOp>(builder.reshape(sorted, shape), ArrayRef<int64_t>{0, 0},
                                   resultType.getShape(), ArrayRef<int64_t>{1, 1});
  sorted = builder.cast(sorted, i64);
  // Within known bounds, so that it needs no check.
  sorted =
      builder.create<MinimumOp>(builder.create<MaximumOp>(sorted, builder.constant(0, resultType)),
                                builder.constant(static_cast<double>(size - 1), resultType));
  Value values = builder.create<GatherOp>(builder.reshape(x, all), inRow(sorted));
  return {values, sorted};
}

static OnnxResults manyAtOnce(Builder &builder, Value x, const TopKOptions &options) {
  int64_t last = tensorType(x).getRank() - 1;
  Value moved = builder.exchange(x, options.axis, last);
  SmallVector<int64_t> shape(tensorType(moved).getShape());
  int64_t size = shape.back(), rows = size == 0 ? 0 : tensorType(x).getNumElements() / size;
  auto [values, indices] =
      byCounting(builder, builder.reshape(moved, {rows, size}), options.count, options.extreme);
  shape.back() = options.count;
  return SmallVector<Value>{builder.exchange(builder.reshape(values, shape), options.axis, last),
                            builder.exchange(builder.reshape(indices, shape), options.axis, last)};
}

static OnnxResults importTopK(OnnxNode &node) {
  Value x = node.input(0);
  FailureOr<TopKOptions> options = topKOptions(node);
  if (failed(options))
    return failure();
  return options->count <= kFew ? oneByOne(node.builder(), x, *options)
                                : manyAtOnce(node.builder(), x, *options);
}

static OnnxRegistration topK = OnnxRegistration("TopK", 1, importTopK).mustKnow(1, "k");

} // namespace trainc::nn
