// SPDX-License-Identifier: Apache-2.0
//
// ONNX Elu: x where positive, alpha * (exp(x) - 1) elsewhere.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importElu(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Type type = x.getType();
  Value zero = builder.constant(0, type), one = builder.constant(1, type);
  // Without the minimum, exp overflows where its value is not taken, and 0 * inf is no gradient.
  Value negative = builder.create<MinimumOp>(x, zero);
  Value curve = builder.scale(builder.sub(builder.exp(negative), one), node.real("alpha", 1));
  return SmallVector<Value>{builder.select(builder.create<GreaterOp>(x, zero), x, curve)};
}

static OnnxRegistration elu("Elu", 6, importElu);

} // namespace trainc::nn
