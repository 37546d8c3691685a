// SPDX-License-Identifier: Apache-2.0
//
// nn.softmax; ONNX Softmax, which below opset 13 runs over all dimensions from
// `axis` on together.
#include "dialects/nn/onnx_softmax.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (type.getRank() < 1) // softmax-c1
    return emitOptionalError(location, "rank is at least 1, found ", type);
  types.push_back(type);
  return success();
}

LogicalResult SoftmaxOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &,
                                       SmallVectorImpl<Value> &operandGradients) {
  Value dy = resultGradients[0], y = getResult();
  Value dot = builder.reduceSum(builder.mul(dy, y), -1);
  Value difference = builder.sub(dy, builder.expand(dot, -1, tensorType(y).getShape()));
  operandGradients.assign({builder.mul(difference, y)});
  return success();
}

double SoftmaxOp::flops() { return 14.0 * getX().getType().getNumElements(); }

SmallVector<Value> SoftmaxOp::decompose(Builder &builder) {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  Value largest = builder.expand(builder.reduceMax(getX(), -1), -1, shape);
  Value exponentials = builder.exp(builder.sub(getX(), largest));
  Value sum = builder.expand(builder.reduceSum(exponentials, -1), -1, shape);
  return {builder.div(exponentials, sum)};
}

static OnnxRegistration together("Softmax", 1, importSoftmaxTogether<SoftmaxOp>);
static OnnxRegistration alongAxis("Softmax", 13, importSoftmaxAlongAxis<SoftmaxOp>);

} // namespace trainc::nn
