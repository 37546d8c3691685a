// SPDX-License-Identifier: Apache-2.0
//
// Mean of squared differences between the output and labels of its shape.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static LossValue squaredError(const LossInput &input) {
  Value difference = input.builder.sub(input.output, input.labels);
  return {.elements = input.builder.mul(difference, difference)};
}

static LossRegistration mseRegistration({
    .name = "mse",
    .description = "squared error",
    .settings = {reductionSetting()},
    .labels = labelsLikeOutput,
    .build = squaredError,
    .buildMetrics = errorMetrics,
});

} // namespace trainc::train
