// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of softmax(output) along one axis against class labels, or against a probability
// for each class.
#include "dialects/nn/label_loss.h"
#include "dialects/train/class_loss.h"

using namespace mlir;

namespace trainc::train {

static constexpr StringLiteral kTargets[] = {"classes", "probabilities"};
static constexpr int64_t kNoLabel = -100; // the default of ignore_index

static bool hasProbabilities(const LossSettings &settings) {
  return settings.word("target") == "probabilities";
}

static bool isPlainEntropy(const LossSettings &settings) {
  return !hasProbabilities(settings) && settings.number("label_smoothing") == 0 &&
         settings.numbers("class_weights").empty() && settings.word("reduction") == "mean";
}

static Labels entropyLabels(RankedTensorType output, const LossSettings &settings,
                            std::string &problem) {
  Labels classes = classLabels(output, settings, problem);
  if (!hasProbabilities(settings) || !problem.empty())
    return classes;
  if (settings.integer("ignore_index") != kNoLabel)
    problem = "has no ignore_index with target=probabilities";
  return {.type = output};
}

/// `-sum over classes of weight * probability * log_softmax(logits)` of each row. A mean divides by
/// the number of rows and not by the weights, as PyTorch's.
static LossValue probabilityEntropy(const LossInput &input, Value logits) {
  nn::Builder &builder = input.builder;
  RankedTensorType type = nn::tensorType(logits);
  int64_t axis = input.settings.integer("axis");
  Value target = nn::moveLast(builder, input.labels, axis < 0 ? axis + type.getRank() : axis);
  if (double smoothing = input.settings.number("label_smoothing"); smoothing > 0) {
    double share = smoothing / static_cast<double>(type.getShape().back());
    target = builder.named("smoothed", builder.add(builder.scale(target, 1 - smoothing),
                                                   builder.constant(share, type)));
  }
  if (ArrayRef<double> weights = input.settings.numbers("class_weights"); !weights.empty()) {
    Value ofClasses = constantNumbers(builder, weights, type.getElementType());
    target =
        builder.mul(target, builder.broadcast(ofClasses, {type.getRank() - 1}, type.getShape()));
  }
  Value products = builder.mul(target, builder.create<nn::LogSoftmaxOp>(logits));
  return {.elements = builder.named("row_loss", builder.neg(builder.reduceSum(products, -1)))};
}

static LossValue crossEntropy(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value logits = classesLast(input);
  if (hasProbabilities(input.settings))
    return probabilityEntropy(input, logits);
  if (isPlainEntropy(input.settings))
    return {.scalar =
                builder.create<nn::CrossEntropyOp>(logits, input.labels, ignoredLabel(input))};
  return lossOfLogProbabilities(input, builder.create<nn::LogSoftmaxOp>(logits),
                                input.settings.number("label_smoothing"));
}

/// Probabilities have no class that would be the right one.
static std::vector<Metric> entropyMetrics(const LossInput &input) {
  return hasProbabilities(input.settings) ? std::vector<Metric>() : classMetrics(input);
}

static LossRegistration crossEntropyRegistration({
    .name = "cross_entropy",
    .description = "cross-entropy of logits, softmax included; labels are classes, or one "
                   "probability for each class",
    .settings = classSettings({{.name = "target",
                                .help = "what labels are; probabilities have the output's shape, "
                                        "and a mean divides by all but the axis of the classes",
                                .kind = LossSetting::word,
                                .defaultValue = "classes",
                                .words = kTargets},
                               {.name = "label_smoothing",
                                .help = "share of the target that is spread over all classes",
                                .defaultValue = "0",
                                .least = 0,
                                .most = 1}}),
    .labels = entropyLabels,
    .build = crossEntropy,
    .buildMetrics = entropyMetrics,
    .isLogPerplexity = isPlainEntropy,
});

} // namespace trainc::train
