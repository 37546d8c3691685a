// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceLogSum, and ReduceLogSumExp, which does not overflow.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceLogSum(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return builder.log(builder.reduceSum(x, dimensions));
  });
}

// Any shift near the largest element serves. Rounded up it has no gradient, whose parts would
// cancel. Where the largest is infinite, nothing is shifted.
static Value logSumExp(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  Value largest = builder.create<CeilOp>(builder.reduceMax(x, dimensions));
  Type type = largest.getType();
  Value infinite =
      builder.create<EqualOp>(builder.create<AbsOp>(largest),
                              builder.constant(std::numeric_limits<double>::infinity(), type));
  Value shift =
      builder.named("shift", builder.select(infinite, builder.constant(0, type), largest));
  Value shifted = builder.sub(x, builder.expand(shift, dimensions, shape));
  Value sum = builder.named("sum", builder.reduceSum(builder.exp(shifted), dimensions));
  return builder.add(builder.log(sum), shift);
}

static OnnxResults importReduceLogSumExp(OnnxNode &node) {
  return importReduction(node, 18, logSumExp);
}

static OnnxRegistration reduceLogSum =
    OnnxRegistration("ReduceLogSum", 1, importReduceLogSum).mustKnow(1, "axes").takesFloats();
static OnnxRegistration reduceLogSumExp =
    OnnxRegistration("ReduceLogSumExp", 1, importReduceLogSumExp).mustKnow(1, "axes").takesFloats();

} // namespace trainc::nn
