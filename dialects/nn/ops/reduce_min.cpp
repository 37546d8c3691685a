// SPDX-License-Identifier: Apache-2.0
//
// nn.reduce_min; ONNX ReduceMin.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceMin(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return dimensions.empty() ? x : builder.create<ReduceMinOp>(x, dimensions);
  });
}

LogicalResult ReduceMinOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  // reduce_min-c1
  return inferReduction(location, adaptor.getX(), adaptor.getDimensions(), types);
}

LogicalResult ReduceMinOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(
      {buildExtremumGradient(builder, getX(), getResult(), resultGradients[0], getDimensions())});
  return success();
}

double ReduceMinOp::flops() { return getX().getType().getNumElements(); }

FailureOr<Tensor> ReduceMinOp::interpret(ArrayRef<Tensor> operands) {
  return interpretReduction(operands[0], getResult().getType(), getDimensions(), INFINITY,
                            INT64_MAX, [](auto a, auto b) { return a < b || a != a ? a : b; });
}

static OnnxRegistration reduceMinRegistration =
    OnnxRegistration("ReduceMin", 1, importReduceMin).mustKnow(1, "axes");

} // namespace trainc::nn
