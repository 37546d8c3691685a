// SPDX-License-Identifier: Apache-2.0
//
// Mean cross-entropy of the output's last dimension against class labels.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static RankedTensorType classLabels(RankedTensorType output, std::string &problem) {
  if (isa<FloatType>(output.getElementType()) && output.getRank() >= 1)
    return RankedTensorType::get(output.getShape().drop_back(),
                                 IntegerType::get(output.getContext(), 64));
  problem = "needs an output of floats with at least one axis, the last one over classes";
  return {};
}

static Value crossEntropy(nn::Builder &builder, Value output, Value labels) {
  return builder.create<nn::CrossEntropyOp>(output, labels,
                                            builder.op().getI64IntegerAttr(kIgnoreIndex));
}

static LossRegistration registration({
    .name = "cross_entropy",
    .description = "cross-entropy over the last axis, mean over rows, ignore index -100",
    .labelsAreClasses = true,
    .labelType = classLabels,
    .build = crossEntropy,
});

} // namespace trainc::train
