// SPDX-License-Identifier: Apache-2.0
//
// ONNX RandomUniform, RandomNormal, their forms with the shape of an input, and Bernoulli. They
// draw in inference too: always the same numbers there, others in each micro-batch of training.
#include "compiler/onnx/compositions/random.h"
#include "dialects/nn/onnx_types.h"
#include <numbers>

using namespace mlir;

namespace trainc::nn {

/// The node's type of float with a shape: that of attribute `dtype`, of its input, or f32.
static FailureOr<RankedTensorType> resultType(OnnxNode &node) {
  MLIRContext *context = node.builder().op().getContext();
  Type element = Float32Type::get(context);
  SmallVector<int64_t> shape;
  if (node.numInputs() > 0) {
    auto like = tensorType(node.input(0));
    shape.assign(like.getShape().begin(), like.getShape().end());
    element = like.getElementType();
  } else {
    auto sizes = node.integers("shape");
    if (!sizes || llvm::any_of(*sizes, [](int64_t size) { return size < 0; }))
      return node.error("attribute 'shape' is no list of sizes");
    shape = *sizes;
  }
  if (node.hasAttribute("dtype"))
    element = onnxElementType(context, node.integer("dtype", 0));
  if (!isa_and_nonnull<FloatType>(element))
    return node.error("dtype " + llvm::Twine(node.integer("dtype", 0)) +
                          " is not supported: float and double are",
                      "insert a Cast behind a node of float");
  return RankedTensorType::get(shape, element);
}

static OnnxResults importUniform(OnnxNode &node) {
  FailureOr<RankedTensorType> type = resultType(node);
  if (failed(type))
    return failure();
  Builder &builder = node.builder();
  double low = node.real("low", 0), high = node.real("high", 1);
  Value uniform = builder.scale(randomUniform(node, *type), high - low);
  return SmallVector<Value>{builder.add(uniform, builder.constant(low, *type))};
}

// Box and Muller, "A note on the generation of random normal deviates", 1958. The logarithm is of
// (0, 1].
static OnnxResults importNormal(OnnxNode &node) {
  FailureOr<RankedTensorType> type = resultType(node);
  if (failed(type))
    return failure();
  Builder &builder = node.builder();
  Value one = builder.constant(1, *type);
  Value logarithm = builder.log(builder.sub(one, randomUniform(node, *type, 0)));
  Value radius = builder.create<SqrtOp>(builder.scale(logarithm, -2));
  Value angle = builder.scale(randomUniform(node, *type, 1), 2 * std::numbers::pi);
  Value normal = builder.mul(radius, builder.create<CosOp>(angle));
  Value scaled = builder.scale(normal, node.real("scale", 1));
  return SmallVector<Value>{builder.add(scaled, builder.constant(node.real("mean", 0), *type))};
}

static OnnxResults importBernoulli(OnnxNode &node) {
  Value probability = node.input(0);
  auto type = tensorType(probability);
  Builder &builder = node.builder();
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its probabilities are no floats");
  Type element = type.getElementType();
  if (node.hasAttribute("dtype"))
    element = onnxElementType(type.getContext(), node.integer("dtype", 0));
  if (!element)
    return node.error("dtype " + llvm::Twine(node.integer("dtype", 0)) + " is not supported");
  Value holds = builder.create<LessOp>(randomUniform(node, type), probability);
  return SmallVector<Value>{builder.cast(holds, element)};
}

static OnnxRegistration uniform =
    OnnxRegistration("RandomUniform", 1, importUniform).gradientOf({});
static OnnxRegistration uniformLike =
    OnnxRegistration("RandomUniformLike", 1, importUniform).gradientOf({});
static OnnxRegistration normal = OnnxRegistration("RandomNormal", 1, importNormal).gradientOf({});
static OnnxRegistration normalLike =
    OnnxRegistration("RandomNormalLike", 1, importNormal).gradientOf({});
static OnnxRegistration bernoulli =
    OnnxRegistration("Bernoulli", 15, importBernoulli).gradientOf({});

} // namespace trainc::nn
