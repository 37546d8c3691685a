// SPDX-License-Identifier: Apache-2.0
//
// Negative log-likelihood: the output holds log-probabilities of classes.
#include "dialects/train/class_loss.h"

using namespace mlir;

namespace trainc::train {

static LossValue likelihood(const LossInput &input) {
  return lossOfLogProbabilities(input, classesLast(input), /*labelSmoothing=*/0);
}

static bool isPlainLikelihood(const LossSettings &settings) {
  return settings.numbers("class_weights").empty() && settings.word("reduction") == "mean";
}

static LossRegistration nllRegistration({
    .name = "nll",
    .description = "negative log-likelihood of log-probabilities; labels are classes",
    .settings = classSettings(),
    .labels = classLabels,
    .build = likelihood,
    .buildMetrics = classMetrics,
    .isLogPerplexity = isPlainLikelihood,
});

} // namespace trainc::train
