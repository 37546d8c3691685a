// SPDX-License-Identifier: Apache-2.0
//
// Half the squared error below `delta`, and delta times the absolute one beyond.
#include "dialects/train/robust_error.h"

using namespace mlir;

namespace trainc::train {

static LossValue huber(const LossInput &input) {
  return {.elements = robustError(input, input.settings.number("delta"))};
}

static LossRegistration huberRegistration({
    .name = "huber",
    .description = "half the squared error below delta, delta times the absolute error beyond",
    .settings = {{.name = "delta",
                  .help = "the error where the square ends",
                  .defaultValue = "1",
                  .least = 0,
                  .isAbove = true},
                 reductionSetting()},
    .labels = labelsLikeOutput,
    .build = huber,
    .buildMetrics = errorMetrics,
});

} // namespace trainc::train
