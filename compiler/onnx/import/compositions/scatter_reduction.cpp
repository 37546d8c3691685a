// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/import/compositions/scatter_reduction.h"
#include "compiler/onnx/import/compositions/extreme_index.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal boolUpdates({"ScatterElements", "ScatterND"}, "reductions of bools");

constexpr int64_t kManyComparisons = 1 << 28; // a node with more is worth a word

/// What changes nothing.
static Value neutral(Builder &builder, StringRef reduction, RankedTensorType type) {
  if (reduction == "add" || reduction == "mul")
    return builder.constant(reduction == "add" ? 0 : 1, type);
  return leastExtreme(builder, type, reduction == "max" ? Extreme::largest : Extreme::smallest);
}

static Value reduced(Builder &builder, Value x, int64_t dimension, StringRef reduction) {
  if (reduction == "add")
    return builder.reduceSum(x, dimension);
  if (reduction == "max")
    return builder.create<ReduceMaxOp>(x, dimension);
  if (reduction == "min")
    return builder.create<ReduceMinOp>(x, dimension);
  return buildProduct(builder, x, dimension);
}

OnnxResults reduceUpdates(OnnxNode &node, Value table, Value rows, Value updates, int64_t axis,
                          StringRef reduction) {
  Builder &builder = node.builder();
  RankedTensorType type = tensorType(table);
  int64_t rank = type.getRank(), count = tensorType(updates).getDimSize(axis);
  if (type.getElementType().isInteger(1))
    return node.error(
        boolUpdates.told("reduction '" + reduction + "' is supported of numbers, not of bools"),
        "insert Casts to int32 and back around the node");
  // One more dimension after the axis: the element itself and all updates of its line.
  SmallVector<int64_t> shape(type.getShape()), ofTable, ofUpdates, low(rank, 0), none(rank, 0);
  shape.insert(shape.begin() + axis + 1, count + 1);
  FailureOr<int64_t> comparisons = countElements(node, shape);
  if (failed(comparisons))
    return failure();
  if (*comparisons > kManyComparisons)
    node.warning("slow-scatter",
                 "compares each of " + llvm::Twine(type.getNumElements()) + " elements with " +
                     llvm::Twine(count) + " updates whenever it runs",
                 "fewer updates a node, or reduction add of floats, which sorts them");
  for (int64_t d = 0; d < rank; ++d) {
    ofTable.push_back(d + (d > axis ? 1 : 0));
    ofUpdates.push_back(d + (d >= axis ? 1 : 0));
  }
  low[axis] = 1;
  auto places = RankedTensorType::get(shape, builder.op().getI64Type());
  auto spread = [&](Value lines) {
    return builder.broadcast(builder.create<PadOp>(lines, low, none, none), ofUpdates, shape);
  };
  Value isOwn = builder.create<EqualOp>(builder.create<IotaOp>(places, axis + 1),
                                        builder.constant(0, places));
  Value isMeant = builder.create<EqualOp>(spread(rows), builder.create<IotaOp>(places, axis));
  Value update =
      builder.select(isMeant, spread(updates), neutral(builder, reduction, type.clone(shape)));
  Value all = builder.select(isOwn, builder.broadcast(table, ofTable, shape), update);
  return SmallVector<Value>{reduced(builder, all, axis + 1, reduction)};
}

} // namespace trainc::nn
