// SPDX-License-Identifier: Apache-2.0
//
// The registry of losses.
#include "dialects/train/loss.h"
#include <map>

using namespace mlir;

namespace trainc::train {

static std::map<std::string, Loss> &losses() {
  static std::map<std::string, Loss> registered;
  return registered;
}

LossRegistration::LossRegistration(const Loss &loss) { losses()[loss.name.str()] = loss; }

const Loss *findLoss(StringRef name) {
  auto found = losses().find(name.str());
  return found == losses().end() ? nullptr : &found->second;
}

std::vector<const Loss *> listLosses() {
  std::vector<const Loss *> result;
  for (const auto &[name, loss] : losses())
    result.push_back(&loss);
  return result;
}

RankedTensorType labelsLikeOutput(RankedTensorType output, std::string &problem) {
  if (isa<FloatType>(output.getElementType()))
    return output;
  problem = "needs an output of floats";
  return {};
}

std::vector<Metric> errorMetrics(nn::Builder &builder, Value output, Value labels) {
  Value error = builder.named("error", builder.sub(output, labels));
  return {{"mean_absolute_error", builder.create<nn::AbsOp>(error)},
          {"mean_squared_error", builder.mul(error, error)}};
}

} // namespace trainc::train
