// SPDX-License-Identifier: Apache-2.0
//
// nn.reduce_max; ONNX ReduceMax.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceMax(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return dimensions.empty() ? x : builder.create<ReduceMaxOp>(x, dimensions);
  });
}

LogicalResult ReduceMaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  // reduce_max-c1
  return inferReduction(location, adaptor.getX(), adaptor.getDimensions(), types);
}

LogicalResult ReduceMaxOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(
      {buildExtremumGradient(builder, getX(), getResult(), resultGradients[0], getDimensions())});
  return success();
}

double ReduceMaxOp::flops() { return getX().getType().getNumElements(); }

FailureOr<Tensor> ReduceMaxOp::interpret(ArrayRef<Tensor> operands) {
  return interpretReduction(operands[0], getResult().getType(), getDimensions(), -INFINITY,
                            INT64_MIN, [](auto a, auto b) { return a > b || a != a ? a : b; });
}

static OnnxRegistration reduceMaxRegistration =
    OnnxRegistration("ReduceMax", 1, importReduceMax).mustKnow(1, "axes");

} // namespace trainc::nn
