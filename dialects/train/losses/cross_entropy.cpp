// SPDX-License-Identifier: Apache-2.0
//
// Cross-entropy of softmax(output) along one axis against class labels.
#include "dialects/train/class_loss.h"

using namespace mlir;

namespace trainc::train {

static bool isPlainEntropy(const LossSettings &settings) {
  return settings.number("label_smoothing") == 0 && settings.numbers("class_weights").empty() &&
         settings.word("reduction") == "mean";
}

static LossValue crossEntropy(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value logits = classesLast(input);
  if (isPlainEntropy(input.settings))
    return {.scalar =
                builder.create<nn::CrossEntropyOp>(logits, input.labels, ignoredLabel(input))};
  return lossOfLogProbabilities(input, builder.create<nn::LogSoftmaxOp>(logits),
                                input.settings.number("label_smoothing"));
}

static LossRegistration crossEntropyRegistration({
    .name = "cross_entropy",
    .description = "cross-entropy of logits, softmax included; labels are classes",
    .settings = classSettings({{.name = "label_smoothing",
                                .help = "share of the target that is spread over all classes",
                                .defaultValue = "0",
                                .least = 0,
                                .most = 1}}),
    .labels = classLabels,
    .build = crossEntropy,
    .buildMetrics = classMetrics,
    .isLogPerplexity = isPlainEntropy,
});

} // namespace trainc::train
