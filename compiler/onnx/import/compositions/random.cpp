// SPDX-License-Identifier: Apache-2.0
//
// ONNX RandomUniform, RandomNormal, their forms with the shape of an input, Bernoulli and
// Multinomial. They draw in inference too: always the same numbers there, others in each
// micro-batch of training.
#include "compiler/onnx/import/compositions/random.h"
#include "compiler/onnx/import/compositions/cum_sum.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/onnx/onnx_types.h"
#include <numbers>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherIntegers({"Multinomial"}, "types other than int32, int64");
static const OnnxRefusal
    otherDrawnTypes({"Bernoulli"}, "types that are none of float, double, bool and the integers");
static const OnnxRefusal otherFloats({"RandomUniform", "RandomUniformLike", "RandomNormal",
                                      "RandomNormalLike"},
                                     "types other than float, double");

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
      return node.error("attribute 'shape' is not a list of sizes");
    shape = *sizes;
  }
  if (node.hasAttribute("dtype"))
    element = onnxElementType(context, node.integer("dtype", 0));
  if (!isa_and_nonnull<FloatType>(element))
    return node.error(otherFloats.told("dtype " + llvm::Twine(node.integer("dtype", 0)) +
                                       " is not supported: float and double are"),
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
    return node.error("its probabilities are not floats", "insert a Cast before the node");
  Type element = type.getElementType();
  if (node.hasAttribute("dtype"))
    element = onnxElementType(type.getContext(), node.integer("dtype", 0));
  if (!element)
    return node.error(otherDrawnTypes.told("dtype " + llvm::Twine(node.integer("dtype", 0)) +
                                           " is not supported"),
                      "dtype 1 (float)");
  Value holds = builder.create<LessOp>(randomUniform(node, type), probability);
  return SmallVector<Value>{builder.cast(holds, element)};
}

// A uniform number for each sample, and how many of the classes' partial sums are not above it. In
// double: a class of probability zero has no width there, and many classes keep theirs.
static OnnxResults importMultinomial(OnnxNode &node) {
  Builder &builder = node.builder();
  auto type = tensorType(node.input(0));
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its logarithms of probabilities are not floats",
                      "insert a Cast before the node");
  if (type.getRank() != 2 || type.getDimSize(1) < 1)
    return node.error("its input has " + llvm::Twine(type.getRank()) +
                      " axes, or no class: it has rows and classes");
  const int64_t rows = type.getDimSize(0), classes = type.getDimSize(1);
  const int64_t samples = node.integer("sample_size", 1), number = node.integer("dtype", 6);
  if (samples < 1)
    return node.error("sample_size " + llvm::Twine(samples) + " is not positive");
  Type element = onnxElementType(type.getContext(), number);
  if (!isa_and_nonnull<IntegerType>(element) || element.getIntOrFloatBitWidth() < 32)
    return node.error(otherIntegers.told("dtype " + llvm::Twine(number) +
                                         " is not supported: int32 and int64 are"),
                      "dtype 7 (int64)");
  Value logits = builder.cast(node.input(0), builder.op().getF64Type());
  auto real = tensorType(logits);
  Value greatest = builder.expand(builder.reduceMax(logits, {1}), {1}, real.getShape());
  Value sums = partialSums(builder, builder.exp(builder.sub(logits, greatest)), 1);
  const SmallVector<int64_t> drawn{rows, samples}, compared{rows, samples, classes - 1};
  Value total = builder.reshape(builder.slice(sums, 1, classes - 1, 1), {rows});
  Value uniform = randomUniform(node, real.clone(drawn));
  if (classes == 1)
    return SmallVector<Value>{builder.cast(builder.scale(uniform, 0), element)};
  Value threshold = builder.mul(uniform, builder.broadcast(total, {0}, drawn));
  Value bounds = builder.broadcast(builder.slice(sums, 1, 0, classes - 1), {0, 2}, compared);
  Value passed =
      builder.create<LessOrEqualOp>(bounds, builder.broadcast(threshold, {0, 1}, compared));
  Value count = builder.reduceSum(builder.cast(passed, real.getElementType()), {2});
  return SmallVector<Value>{builder.cast(count, element)};
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
static OnnxRegistration multinomial =
    OnnxRegistration("Multinomial", 7, importMultinomial).gradientOf({});

} // namespace trainc::nn
