// SPDX-License-Identifier: Apache-2.0
//
// ONNX Shrink: zero within lambd of zero; elsewhere x, moved towards zero by bias.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importShrink(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Type type = x.getType();
  Value bias = builder.constant(node.real("bias", 0), type);
  double lambda = node.real("lambd", 0.5);
  Value below = builder.create<LessOp>(x, builder.constant(-lambda, type));
  Value within = builder.create<LessOrEqualOp>(x, builder.constant(lambda, type));
  // Where no comparison holds is what is above, or NaN, which stays.
  Value others = builder.select(within, builder.constant(0, type), builder.sub(x, bias));
  return SmallVector<Value>{builder.select(below, builder.add(x, bias), others)};
}

static OnnxRegistration shrink = OnnxRegistration("Shrink", 9, importShrink).takesFloats();

} // namespace trainc::nn
