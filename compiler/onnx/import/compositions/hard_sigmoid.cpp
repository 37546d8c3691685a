// SPDX-License-Identifier: Apache-2.0
//
// ONNX HardSigmoid, max(0, min(1, alpha * x + beta)), and HardSwish, x times that. Where the line
// meets 0 or 1, HardSigmoid's gradient is 0, as in PyTorch.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static Value hardSigmoid(Builder &builder, Value x, double alpha, double beta) {
  Type type = x.getType();
  Value zero = builder.constant(0, type), one = builder.constant(1, type);
  Value line = builder.add(builder.scale(x, alpha), builder.constant(beta, type));
  Value low = builder.select(builder.create<LessOrEqualOp>(line, zero), zero, line);
  return builder.select(builder.create<GreaterOrEqualOp>(line, one), one, low);
}

static OnnxResults importHardSigmoid(OnnxNode &node) {
  return SmallVector<Value>{hardSigmoid(node.builder(), node.input(0), node.real("alpha", 0.2f),
                                        node.real("beta", 0.5f))};
}

static OnnxResults importHardSwish(OnnxNode &node) {
  Value x = node.input(0);
  return SmallVector<Value>{node.builder().mul(x, hardSigmoid(node.builder(), x, 1.0 / 6, 0.5))};
}

static OnnxRegistration hardSigmoidOp("HardSigmoid", 6, importHardSigmoid);
static OnnxRegistration hardSwish("HardSwish", 14, importHardSwish);

} // namespace trainc::nn
