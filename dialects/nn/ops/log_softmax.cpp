// SPDX-License-Identifier: Apache-2.0
//
// nn.log_softmax; ONNX LogSoftmax.
#include "dialects/nn/onnx/onnx_softmax.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (type.getRank() < 1) // log_softmax-c1
    return emitOptionalError(location, "rank is at least 1, found ", type);
  types.push_back(type);
  return success();
}

LogicalResult LogSoftmaxOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                          const llvm::SmallBitVector &,
                                          SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0], y = getResult();
  Value sum = builder.named("gradient_sum", builder.reduceSum(dy, -1));
  sum = builder.expand(sum, -1, tensorType(y).getShape());
  operandGradients.assign({builder.sub(dy, builder.mul(builder.exp(y), sum))});
  return success();
}

double LogSoftmaxOp::flops() { return 14.0 * getX().getType().getNumElements(); }

SmallVector<Value> LogSoftmaxOp::decompose(Builder &builder) {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  Value largest = builder.named("largest", builder.reduceMax(getX(), -1));
  Value shifted = builder.named("shifted", builder.sub(getX(), builder.expand(largest, -1, shape)));
  Value exponentials = builder.named("exponential", builder.exp(shifted));
  Value sum = builder.named("sum_of_exponentials", builder.reduceSum(exponentials, -1));
  Value logarithm = builder.named("log_of_sum", builder.log(sum));
  return {builder.sub(shifted, builder.expand(logarithm, -1, shape))};
}

static OnnxRegistration logSoftmaxTogether("LogSoftmax", 1, importSoftmaxTogether<LogSoftmaxOp>);
static OnnxRegistration logSoftmaxAlongAxis("LogSoftmax", 13, importSoftmaxAlongAxis<LogSoftmaxOp>);

} // namespace trainc::nn
