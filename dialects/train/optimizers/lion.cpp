// SPDX-License-Identifier: Apache-2.0
//
// Lion (Chen et al. 2023, arXiv 2302.06675, algorithm 2): the sign of an interpolated momentum.
#include "dialects/train/optimizer.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildLion(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate"), parameter = update.parameter;
  Value one = s.constant(1, learningRate.getType());
  if (update.decays) {
    Value kept =
        s.named("decay_factor", s.sub(one, s.mul(learningRate, update.scalar("weight_decay"))));
    parameter = b.named("decayed_parameter", b.mul(parameter, update.spread(kept)));
  }
  auto interpolated = [&](const char *beta, const char *rest) {
    Value kept = update.scalar(beta);
    Value taken = s.named(rest, s.sub(one, kept));
    return b.add(b.mul(update.states[0], update.spread(kept)),
                 b.mul(update.gradient, update.spread(taken)));
  };
  Value direction =
      b.named("direction",
              b.create<nn::SignOp>(b.named("momentum", interpolated("beta1", "one_minus_beta1"))));
  Value average = b.named("exp_avg", interpolated("beta2", "one_minus_beta2"));
  Value change = b.mul(update.spread(learningRate), direction);
  return {b.named("parameter", b.sub(parameter, change)), {average}};
}

static const OptimizerRegistration lionRegistration({
    "lion",
    "Lion, the sign of the momentum (Chen et al. 2023)",
    {Hyperparameter{"beta1", 0.9, "weight of the momentum in the update"}.below(1),
     Hyperparameter{"beta2", 0.99, "decay rate of the momentum"}.below(1),
     {"weight_decay", 0, "decoupled weight decay of the parameters that decay"}},
    {"exp_avg"},
    buildLion,
    /*stateOf=*/{},
    /*squares=*/{false},
});

} // namespace trainc::train
