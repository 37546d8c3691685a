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

static LossRegistration registration({
    .name = "bce_with_logits",
    .description = "mean binary cross-entropy of logits",
    .labelType = labelsLikeOutput,
    .buildElements = binaryCrossEntropy,
});

} // namespace trainc::train
