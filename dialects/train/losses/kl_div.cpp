// SPDX-License-Identifier: Apache-2.0
//
// Kullback-Leibler divergence of the labels' distribution from the output's, which is given as
// log-probabilities: label * (log(label) - output).
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

static LossValue divergence(const LossInput &input) {
  nn::Builder &builder = input.builder;
  if (input.settings.word("log_target") == "true")
    return {.elements =
                builder.mul(builder.exp(input.labels), builder.sub(input.labels, input.output))};
  // A label 0 adds nothing, though its logarithm is infinite.
  auto type = input.labels.getType();
  Value zero = builder.constant(0, type), one = builder.constant(1, type);
  Value isNone = builder.create<nn::EqualOp>(input.labels, zero);
  Value log = builder.log(builder.select(isNone, one, input.labels));
  return {.elements =
              builder.sub(builder.mul(input.labels, log), builder.mul(input.labels, input.output))};
}

static constexpr StringLiteral kTruths[] = {"false", "true"};

static LossRegistration klDivRegistration({
    .name = "kl_div",
    .description = "Kullback-Leibler divergence; the output holds log-probabilities, the labels "
                   "probabilities",
    .settings = {{.name = "log_target",
                  .help = "the labels are log-probabilities too",
                  .kind = LossSetting::word,
                  .defaultValue = "false",
                  .words = kTruths},
                 reductionSettingWithBatchMean()},
    .labels = labelsLikeOutput,
    .build = divergence,
});

} // namespace trainc::train
