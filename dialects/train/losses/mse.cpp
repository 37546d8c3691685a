// SPDX-License-Identifier: Apache-2.0
//
// Mean of squared differences between the output and labels of its shape.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static Value meanSquaredError(nn::Builder &builder, Value output, Value labels) {
  Value difference = builder.sub(output, labels);
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, nn::tensorType(output).getRank()));
  return builder.reduceMean(builder.mul(difference, difference), all);
}

static LossRegistration registration({
    .name = "mse",
    .description = "mean squared error",
    .labelType = labelsLikeOutput,
    .build = meanSquaredError,
});

} // namespace trainc::train
