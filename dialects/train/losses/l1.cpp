// SPDX-License-Identifier: Apache-2.0
//
// Mean of absolute differences between the output and labels of its shape.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static LossValue absoluteError(const LossInput &input) {
  Value difference = input.builder.sub(input.output, input.labels);
  return {.elements = input.builder.create<nn::AbsOp>(difference)};
}

static LossRegistration l1Registration({
    .name = "l1",
    .description = "absolute error",
    .settings = {reductionSetting()},
    .labels = labelsLikeOutput,
    .build = absoluteError,
    .buildMetrics = errorMetrics,
});

} // namespace trainc::train
