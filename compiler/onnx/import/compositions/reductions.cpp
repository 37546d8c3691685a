// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceL1, ReduceL2 (whose gradient at zero is zero, as PyTorch has it), ReduceSumSquare,
// ReduceProd, ReduceLogSum, and ReduceLogSumExp, which does not overflow.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static Value sumOfSizes(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  return builder.reduceSum(builder.create<AbsOp>(x), dimensions);
}

static Value sumOfSquares(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  return builder.reduceSum(builder.mul(x, x), dimensions);
}

static Value logSum(Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
  return builder.log(builder.reduceSum(x, dimensions));
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

template <Value (*reduce)(Builder &, Value, ArrayRef<int64_t>)>
static OnnxResults importReduced(OnnxNode &node) {
  return importReduction(node, 18, reduce);
}

static OnnxRegistration reduceL1 =
    OnnxRegistration("ReduceL1", 1, importReduced<sumOfSizes>).mustKnow(1, "axes");
static OnnxRegistration reduceL2 =
    OnnxRegistration("ReduceL2", 1, importReduced<buildNorm>).mustKnow(1, "axes").takesFloats();
static OnnxRegistration reduceSumSquare =
    OnnxRegistration("ReduceSumSquare", 1, importReduced<sumOfSquares>).mustKnow(1, "axes");
static OnnxRegistration reduceProd =
    OnnxRegistration("ReduceProd", 1, importReduced<buildProduct>).mustKnow(1, "axes");
static OnnxRegistration reduceLogSum =
    OnnxRegistration("ReduceLogSum", 1, importReduced<logSum>).mustKnow(1, "axes").takesFloats();
static OnnxRegistration reduceLogSumExp =
    OnnxRegistration("ReduceLogSumExp", 1, importReduced<logSumExp>)
        .mustKnow(1, "axes")
        .takesFloats();

} // namespace trainc::nn
