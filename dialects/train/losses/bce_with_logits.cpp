// SPDX-License-Identifier: Apache-2.0
//
// Mean binary cross-entropy of sigmoid(output) against labels in [0, 1].
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

// softplus(-x) + (1 - label) * x: no overflow, and no sigmoid that rounds to 0 or 1.
static Value binaryCrossEntropy(nn::Builder &builder, Value output, Value labels) {
  Value positive = builder.create<nn::SoftplusOp>(builder.neg(output));
  Value one = builder.constant(1, labels.getType());
  return builder.add(positive, builder.mul(builder.sub(one, labels), output));
}

// A logit above 0 is a probability above a half.
static std::vector<Metric> accuracy(nn::Builder &builder, Value output, Value labels) {
  auto above = [&](Value x, double threshold) {
    return builder.create<nn::GreaterOp>(x, builder.constant(threshold, x.getType()));
  };
  Value predicted = builder.named("is_predicted", above(output, 0));
  Value agrees = builder.create<nn::EqualOp>(predicted, above(labels, 0.5));
  auto type = cast<FloatType>(nn::tensorType(output).getElementType());
  return {{"accuracy", builder.cast(builder.named("is_correct", agrees), type)}};
}

static LossRegistration registration({
    .name = "bce_with_logits",
    .description = "mean binary cross-entropy of logits",
    .labelType = labelsLikeOutput,
    .buildElements = binaryCrossEntropy,
    .buildMetrics = accuracy,
});

} // namespace trainc::train
