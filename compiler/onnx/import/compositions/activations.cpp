// SPDX-License-Identifier: Apache-2.0
//
// ONNX's activations that are compositions.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// x where positive, slope * x elsewhere.
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

static OnnxWeight weightsOfPRelu(unsigned input, ArrayRef<int64_t> shape) {
  return input == 1 && !shape.empty() ? OnnxWeight::scale : OnnxWeight::none;
}

// x above alpha, elsewhere zero; NaN stays.
static OnnxResults importThresholdedRelu(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Value below =
      builder.create<LessOrEqualOp>(x, builder.constant(node.real("alpha", 1), x.getType()));
  return SmallVector<Value>{builder.select(below, builder.constant(0, x.getType()), x)};
}

// Zero within lambd of zero; elsewhere x, moved towards zero by bias.
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

// factor * x where positive, factor * alpha * (exp(x / width) - 1) elsewhere.
static OnnxResults importExponentialUnit(OnnxNode &node, double factor, double alpha,
                                         double width) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Type type = x.getType();
  if (!isa<FloatType>(tensorType(x).getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  Value zero = builder.constant(0, type);
  Value positive = builder.create<GreaterOp>(x, zero);
  // Without the zeros, exp overflows where its value is not taken, and 0 * inf is not a gradient.
  Value negative = builder.select(positive, zero, x);
  if (width != 1)
    negative = builder.scale(negative, 1 / width);
  Value curve = builder.scale(builder.create<Expm1Op>(negative), factor * alpha);
  Value line = factor == 1 ? x : builder.scale(x, factor);
  return SmallVector<Value>{builder.select(positive, line, curve)};
}

static OnnxResults importElu(OnnxNode &node) {
  return importExponentialUnit(node, 1, node.real("alpha", 1), 1);
}

static OnnxResults importSelu(OnnxNode &node) {
  // The operator's own defaults, as floats.
  return importExponentialUnit(node, node.real("gamma", 1.05070102214813232421875f),
                               node.real("alpha", 1.67326319217681884765625f), 1);
}

static OnnxResults importCelu(OnnxNode &node) {
  double alpha = node.real("alpha", 1);
  if (alpha == 0)
    return node.error("alpha is zero, by which it divides");
  return importExponentialUnit(node, 1, alpha, alpha);
}

// max(0, min(1, alpha * x + beta)). Where the line meets 0 or 1, the gradient is 0, as in PyTorch.
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

// Exact or by tanh.
static OnnxResults importGelu(OnnxNode &node) {
  Value x = node.input(0);
  std::string approximate = node.string("approximate", "none");
  if (!isa<FloatType>(tensorType(x).getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  if (approximate == "tanh")
    return SmallVector<Value>{node.builder().create<GeluTanhOp>(x)};
  if (approximate == "none")
    return SmallVector<Value>{node.builder().create<GeluOp>(x)};
  return node.error("unknown approximation '" + approximate + "'", "none or tanh");
}

// x * sigmoid(alpha * x)
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

// x * tanh(softplus(x))
static OnnxResults importMish(OnnxNode &node) {
  Value x = node.input(0);
  Builder &builder = node.builder();
  return SmallVector<Value>{builder.mul(x, builder.create<TanhOp>(builder.create<SoftplusOp>(x)))};
}

static OnnxRegistration leakyRelu("LeakyRelu", 6, importLeakyRelu);
static OnnxRegistration pRelu("PRelu", 6, importPRelu, weightsOfPRelu);
static OnnxRegistration thresholdedRelu("ThresholdedRelu", 10, importThresholdedRelu);
static OnnxRegistration shrink = OnnxRegistration("Shrink", 9, importShrink).takesFloats();
static OnnxRegistration elu("Elu", 6, importElu);
static OnnxRegistration selu("Selu", 6, importSelu);
static OnnxRegistration celu("Celu", 12, importCelu);
static OnnxRegistration hardSigmoidOp("HardSigmoid", 6, importHardSigmoid);
static OnnxRegistration hardSwish("HardSwish", 14, importHardSwish);
static OnnxRegistration gelu("Gelu", 20, importGelu);
static OnnxRegistration swish("Swish", 24, importSwish);
static OnnxRegistration mish("Mish", 18, importMish);

} // namespace trainc::nn
