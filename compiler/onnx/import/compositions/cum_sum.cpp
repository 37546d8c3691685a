// SPDX-License-Identifier: Apache-2.0
//
// ONNX CumSum: partial sums over twice as many elements in each step (Hillis and Steele 1986).
#include "compiler/onnx/import/compositions/cum_sum.h"

using namespace mlir;

namespace trainc::nn {

// The elements moved `distance` places along a dimension, zeros before them.
static Value shifted(Builder &builder, Value x, int64_t dimension, int64_t distance) {
  SmallVector<int64_t> zeros(tensorType(x).getRank(), 0), low(zeros);
  int64_t left = tensorType(x).getDimSize(dimension) - distance;
  low[dimension] = distance;
  return builder.create<PadOp>(builder.slice(x, dimension, 0, left), low, zeros, zeros);
}

Value partialSums(Builder &builder, Value x, int64_t dimension) {
  for (int64_t distance = 1; distance < tensorType(x).getDimSize(dimension); distance *= 2)
    x = builder.add(x, shifted(builder, x, dimension, distance));
  return x;
}

static OnnxResults importCumSum(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  FailureOr<int64_t> axis = node.knownInteger(1, "axis");
  if (failed(axis))
    return failure();
  FailureOr<int64_t> found = dimensionOf(node, *axis, type.getRank());
  if (failed(found))
    return failure();
  int64_t dimension = *found;
  bool backwards = node.integer("reverse", 0);
  if (backwards)
    x = builder.create<ReverseOp>(x, dimension);
  if (node.integer("exclusive", 0) && type.getDimSize(dimension) > 0)
    x = shifted(builder, x, dimension, 1);
  x = partialSums(builder, x, dimension);
  return SmallVector<Value>{backwards ? builder.create<ReverseOp>(x, dimension) : x};
}

static OnnxRegistration cumSum = OnnxRegistration("CumSum", 11, importCumSum).mustKnow(1, "axis");

} // namespace trainc::nn
