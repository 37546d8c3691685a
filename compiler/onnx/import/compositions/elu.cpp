// SPDX-License-Identifier: Apache-2.0
//
// ONNX Elu, Selu and Celu: x where positive, elsewhere an exponential that approaches a constant.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

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

static OnnxRegistration elu("Elu", 6, importElu);
static OnnxRegistration selu("Selu", 6, importSelu);
static OnnxRegistration celu("Celu", 12, importCelu);

} // namespace trainc::nn
