// SPDX-License-Identifier: Apache-2.0
//
// Binary cross-entropy of sigmoid(output) against labels in [0, 1].
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

/// The axis of `pos_weight`, from the first on; below 0 where the output does not have it.
static int64_t axisOfWeights(RankedTensorType output, const LossSettings &settings) {
  int64_t axis = settings.integer("axis");
  return axis < 0 ? axis + output.getRank() : axis;
}

static Labels labelsOfLogits(RankedTensorType output, const LossSettings &settings,
                             std::string &problem) {
  size_t weights = settings.numbers("pos_weight").size();
  int64_t axis = axisOfWeights(output, settings), rank = output.getRank();
  if (weights > 1 && (axis < 0 || axis >= rank))
    problem = "has axis " + std::to_string(settings.integer("axis"));
  else if (weights > 1 && static_cast<int64_t>(weights) != output.getDimSize(axis))
    problem = "has " + std::to_string(weights) +
              " numbers as pos_weight, which are one, or one for each element of " +
              (axis == rank - 1 ? "the last axis" : "axis " + std::to_string(axis));
  return problem.empty() ? labelsLikeOutput(output, settings, problem) : Labels();
}

/// One for each element of an axis, as a tensor like the output.
static Value spreadWeights(nn::Builder &builder, ArrayRef<double> weights, int64_t axis,
                           RankedTensorType type) {
  if (weights.size() == 1)
    return builder.constant(weights.front(), type);
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
    Value more = builder.sub(
        spreadWeights(builder, weights, axisOfWeights(type, input.settings), type), one);
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
                          "each element of an axis",
                  .kind = LossSetting::numbers,
                  .least = 0},
                 {.name = "axis",
                  .help = "of the output, that pos_weight lies along; 1 for N, C, H, W",
                  .kind = LossSetting::integer,
                  .defaultValue = "-1"},
                 reductionSetting()},
    .labels = labelsOfLogits,
    .build = crossEntropyOfLogits,
    .buildMetrics = accuracyOfLogits,
});

} // namespace trainc::train
