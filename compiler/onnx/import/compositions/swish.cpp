// SPDX-License-Identifier: Apache-2.0
//
// ONNX Swish, x * sigmoid(alpha * x).
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importSwish(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  if (!isa<FloatType>(tensorType(x).getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  double alpha = node.real("alpha", 1);
  Value scaled = alpha == 1 ? x : builder.scale(x, alpha);
  return SmallVector<Value>{
      builder.mul(x, builder.named("gate", builder.create<SigmoidOp>(scaled)))};
}

static OnnxRegistration swish("Swish", 24, importSwish);

} // namespace trainc::nn
