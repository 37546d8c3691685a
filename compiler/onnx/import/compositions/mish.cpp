// SPDX-License-Identifier: Apache-2.0
//
// ONNX Mish, x * tanh(softplus(x)).
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importMish(OnnxNode &node) {
  Value x = node.input(0);
  Builder &builder = node.builder();
  return SmallVector<Value>{builder.mul(x, builder.create<TanhOp>(builder.create<SoftplusOp>(x)))};
}

static OnnxRegistration mish("Mish", 18, importMish);

} // namespace trainc::nn
