// SPDX-License-Identifier: Apache-2.0
//
// ONNX LeakyRelu and PRelu: x where positive, slope * x elsewhere.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static Value slope(Builder &builder, Value x, Value factor) {
  Value positive = builder.create<GreaterOp>(x, builder.constant(0, x.getType()));
  return builder.select(positive, x, builder.mul(x, factor));
}

static OnnxResults importLeakyRelu(OnnxNode &node) {
  Value x = node.input(0);
  Value factor = node.builder().constant(node.real("alpha", 0.01f), x.getType());
  return SmallVector<Value>{slope(node.builder(), x, factor)};
}

static OnnxResults importPRelu(OnnxNode &node) {
  Value x = node.input(0), factor = node.input(1);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto joined = broadcastShapes(shape, tensorType(factor).getShape());
  if (!joined || ArrayRef<int64_t>(*joined) != shape)
    return node.error("slopes do not broadcast to the operand");
  Builder &builder = node.builder(); // a constant may be of another width
  factor = builder.cast(factor, tensorType(x).getElementType());
  return SmallVector<Value>{slope(builder, x, builder.broadcastTo(factor, shape))};
}

static OnnxRegistration leakyRelu("LeakyRelu", 6, importLeakyRelu);
static OnnxWeight weightsOfPRelu(unsigned input, ArrayRef<int64_t> shape) {
  return input == 1 && !shape.empty() ? OnnxWeight::scale : OnnxWeight::none;
}

static OnnxRegistration pRelu("PRelu", 6, importPRelu, weightsOfPRelu);

} // namespace trainc::nn
