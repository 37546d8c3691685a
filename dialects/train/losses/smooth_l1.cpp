// SPDX-License-Identifier: Apache-2.0
//
// The absolute error, rounded off below `beta`: huber divided by beta.
#include "dialects/train/robust_error.h"

using namespace mlir;

namespace trainc::train {

static LossValue smoothL1(const LossInput &input) {
  nn::Builder &builder = input.builder;
  double beta = input.settings.number("beta");
  if (beta == 0)
    return {.elements = builder.create<nn::AbsOp>(builder.sub(input.output, input.labels))};
  return {.elements = builder.scale(robustError(input, beta), 1 / beta)};
}

static LossRegistration smoothL1Registration({
    .name = "smooth_l1",
    .description = "the absolute error, below beta the squared one over 2 beta",
    .settings = {{.name = "beta",
                  .help = "the error where the square ends; 0: l1",
                  .defaultValue = "1",
                  .least = 0},
                 reductionSetting()},
    .labels = labelsLikeOutput,
    .build = smoothL1,
    .buildMetrics = errorMetrics,
});

} // namespace trainc::train
