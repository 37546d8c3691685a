// SPDX-License-Identifier: Apache-2.0
//
// ONNX BitShift of unsigned integers: products with powers of two, which wrap at the width, and
// quotients by them.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importBitShift(OnnxNode &node) {
  Builder &builder = node.builder();
  std::string direction = node.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return node.error("direction '" + direction + "' is neither LEFT nor RIGHT");
  SmallVector<Value> operands{node.input(0), node.input(1)};
  if (failed(builder.unify(operands)))
    return node.error("operands do not broadcast");
  Type element = tensorType(operands[0]).getElementType(), i64 = builder.op().getI64Type(),
       f64 = builder.op().getF64Type();
  if (!isa<IntegerType>(element) || tensorType(operands[1]).getElementType() != element)
    return node.error("operands are not of one integer type", "insert a Cast before the node");
  Value distance = builder.cast(operands[1], f64);
  Value power = builder.create<PowOp>(builder.constant(2, distance.getType()), distance);
  Value x = builder.cast(operands[0], i64), factor = builder.cast(power, i64);
  Value y = direction == "LEFT" ? builder.mul(x, factor) : builder.div(x, factor);
  return SmallVector<Value>{builder.cast(y, element)};
}

static OnnxRegistration bitShift = OnnxRegistration("BitShift", 11, importBitShift).gradientOf({});

} // namespace trainc::nn
