// SPDX-License-Identifier: Apache-2.0
//
// Mean of squared differences between the output and labels of its shape.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static Value squaredError(nn::Builder &builder, Value output, Value labels) {
  Value difference = builder.sub(output, labels);
  return builder.mul(difference, difference);
}

static LossRegistration registration({
    .name = "mse",
    .description = "mean squared error",
    .labelType = labelsLikeOutput,
    .buildElements = squaredError,
    .buildMetrics = errorMetrics,
});

} // namespace trainc::train
