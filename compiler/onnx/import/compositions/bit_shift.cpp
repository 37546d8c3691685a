// SPDX-License-Identifier: Apache-2.0
//
// ONNX BitShift: products with powers of two, which wrap at the width, and quotients by them,
// rounded down. Distances outside of the width leave the sign alone.
#include "dialects/nn/onnx/onnx_node.h"

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
  Value x = builder.cast(operands[0], i64), distance = builder.cast(operands[1], i64);
  auto number = [&](double value) { return builder.constant(value, x.getType()); };
  Value isWithin = builder.create<AndOp>(
      builder.create<GreaterOrEqualOp>(distance, number(0)),
      builder.create<LessOp>(distance, number(element.getIntOrFloatBitWidth())));
  distance = builder.select(isWithin, distance, number(0));
  // In two steps: 2^63 is not a number of 64 bits.
  Value first = builder.create<MinimumOp>(distance, number(32));
  SmallVector<Value> factors;
  for (Value part : {first, builder.sub(distance, first)}) {
    Value exponent = builder.cast(part, f64);
    Value power = builder.create<PowOp>(builder.constant(2, exponent.getType()), exponent);
    factors.push_back(builder.cast(power, i64));
  }
  Value y, otherwise = number(0);
  if (direction == "LEFT") {
    y = builder.mul(builder.mul(x, factors[0]), factors[1]);
  } else {
    Value isNegative = builder.create<LessOp>(x, number(0));
    Value size = builder.select(isNegative, builder.create<BitNotOp>(x), x);
    size = builder.div(builder.div(size, factors[0]), factors[1]);
    y = builder.select(isNegative, builder.create<BitNotOp>(size), size);
    otherwise = builder.select(isNegative, number(-1), otherwise);
  }
  return SmallVector<Value>{builder.cast(builder.select(isWithin, y, otherwise), element)};
}

static OnnxRegistration bitShift = OnnxRegistration("BitShift", 11, importBitShift).gradientOf({});

} // namespace trainc::nn
