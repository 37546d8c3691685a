// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter 2019, algorithm 2) with the arithmetic of
// torch.optim.AdamW, `amsgrad` off.
#include "dialects/train/adam.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildAdamW(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate"), parameter = update.parameter;
  if (update.decays) {
    Value one = s.constant(1, learningRate.getType());
    Value kept =
        s.named("decay_factor", s.sub(one, s.mul(learningRate, update.scalar("weight_decay"))));
    parameter = b.named("decayed_parameter", b.mul(parameter, update.spread(kept)));
  }
  AdamMoments moments = adamMoments(update, update.gradient);
  Value direction = b.named("direction", b.div(moments.mean, moments.denominator));
  Value rate = update.spread(s.named("step_size", s.div(learningRate, moments.correction1)));
  return {b.named("parameter", b.sub(parameter, b.mul(rate, direction))),
          {moments.mean, moments.square}};
}

static const OptimizerRegistration registration({
    "adamw",
    "AdamW with decoupled weight decay (Loshchilov and Hutter 2019)",
    {Hyperparameter{"beta1", 0.9, "decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "decay rate of the second moment"}.below(1),
     {"eps", 1e-8, "added to the root of the second moment"},
     {"weight_decay", 1e-2, "decoupled weight decay of the parameters that decay"}},
    {"exp_avg", "exp_avg_sq"},
    buildAdamW,
});

} // namespace trainc::train
