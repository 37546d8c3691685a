// SPDX-License-Identifier: Apache-2.0
//
// Binary cross-entropy of sigmoid(output) against labels in [0, 1].
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static Labels labelsOfLogits(RankedTensorType output, const LossSettings &settings,
                             std::string &problem) {
  size_t weights = settings.numbers("pos_weight").size();
  int64_t last = output.getRank() > 0 ? output.getShape().back() : 1;
  if (weights > 1 && static_cast<int64_t>(weights) != last)
    problem = "has " + std::to_string(weights) +
              " numbers as pos_weight, which are one, or one for each element of the last axis";
  return problem.empty() ? labelsLikeOutput(output, settings, problem) : Labels();
}

/// One for each element of the last axis, as a tensor like the output.
static Value spreadWeights(nn::Builder &builder, ArrayRef<double> weights, RankedTensorType type) {
  if (weights.size() == 1)
    return builder.constant(weights.front(), type);
  int64_t axis = type.getRank() - 1;
  return builder.broadcast(constantNumbers(builder, weights, type.getElementType()), {axis},
                           type.getShape());
}

// (1 - label) * x + w * softplus(-x), w = 1 + (pos_weight - 1) * label: no overflow, and no sigmoid
// that rounds to 0 or 1.
static LossValue crossEntropyOfLogits(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value positive = builder.create<nn::SoftplusOp>(builder.neg(input.output));
  RankedTensorType type = nn::tensorType(input.labels);
  Value one = builder.constant(1, type);
  if (ArrayRef<double> weights = input.settings.numbers("pos_weight"); !weights.empty()) {
    Value more = builder.sub(spreadWeights(builder, weights, type), one);
    Value weight = builder.add(builder.mul(more, input.labels), one);
    positive = builder.mul(builder.named("positive_weight", weight), positive);
  }
  return {.elements =
              builder.add(positive, builder.mul(builder.sub(one, input.labels), input.output))};
}

// A logit above 0 is a probability above a half.
static std::vector<Metric> accuracyOfLogits(const LossInput &input) {
  return binaryAccuracy(input, 0);
}

static LossRegistration bceWithLogitsRegistration({
    .name = "bce_with_logits",
    .description = "binary cross-entropy of logits; labels are from 0 to 1",
    .settings = {{.name = "pos_weight",
                  .help = "what the loss of a label 1 is multiplied with: one number, or one for "
                          "each element of the last axis",
                  .kind = LossSetting::numbers,
                  .least = 0},
                 reductionSetting()},
    .labels = labelsOfLogits,
    .build = crossEntropyOfLogits,
    .buildMetrics = accuracyOfLogits,
});

} // namespace trainc::train
