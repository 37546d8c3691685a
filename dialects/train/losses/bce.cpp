// SPDX-License-Identifier: Apache-2.0
//
// Binary cross-entropy of probabilities against labels in [0, 1].
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

// log(p), not below -100, as PyTorch bounds it. Where it is bounded the slope is 1e12, which is
// PyTorch's bound of 1 / p: a probability of exactly 0 is still pushed away from it.
static Value boundedLog(nn::Builder &builder, Value probability) {
  constexpr double least = 3.8e-44, slope = 1e12, bound = -100; // exp(-100) = 3.72e-44
  auto number = [&](double value) { return builder.constant(value, probability.getType()); };
  Value isTiny = builder.create<nn::LessOp>(probability, number(least));
  Value log = builder.log(builder.select(isTiny, number(1), probability));
  Value straight = builder.add(builder.scale(probability, slope), number(bound));
  return builder.select(isTiny, straight, log);
}

static LossValue crossEntropyOfProbabilities(const LossInput &input) {
  nn::Builder &builder = input.builder;
  Value one = builder.constant(1, input.output.getType());
  auto part = [&](Value share, Value probability) {
    return builder.mul(share, boundedLog(builder, probability));
  };
  Value positive = part(input.labels, input.output);
  Value negative = part(builder.sub(one, input.labels), builder.sub(one, input.output));
  return {.elements = builder.neg(builder.add(positive, negative))};
}

static std::vector<Metric> accuracyOfProbabilities(const LossInput &input) {
  return binaryAccuracy(input, 0.5);
}

static LossRegistration bceRegistration({
    .name = "bce",
    .description = "binary cross-entropy of probabilities; labels are from 0 to 1",
    .settings = {reductionSetting()},
    .labels = labelsLikeOutput,
    .build = crossEntropyOfProbabilities,
    .buildMetrics = accuracyOfProbabilities,
});

} // namespace trainc::train
