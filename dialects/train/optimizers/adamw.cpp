// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter 2019, algorithm 2) with the arithmetic of
// torch.optim.AdamW, `amsgrad` off.
#include "dialects/train/optimizer.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildAdamW(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate"), step = update.scalar("step");
  Value beta1 = update.scalar("beta1"), beta2 = update.scalar("beta2");
  Value one = s.constant(1, step.getType());
  Value correction1 = s.sub(one, s.create<nn::PowOp>(beta1, step));
  Value correction2 = s.sub(one, s.create<nn::PowOp>(beta2, step));

  Value parameter = update.parameter, gradient = update.gradient;
  if (update.decays) {
    Value kept = s.sub(one, s.mul(learningRate, update.scalar("weight_decay")));
    parameter = b.mul(parameter, update.spread(kept));
  }
  Value mean = b.add(b.mul(update.states[0], update.spread(beta1)),
                     b.mul(gradient, update.spread(s.sub(one, beta1))));
  Value square = b.add(b.mul(update.states[1], update.spread(beta2)),
                       b.mul(b.mul(gradient, gradient), update.spread(s.sub(one, beta2))));
  Value root = b.create<nn::SqrtOp>(square);
  Value scaled = b.mul(root, update.spread(s.create<nn::RsqrtOp>(correction2)));
  Value denominator = b.add(scaled, update.spread(update.scalar("eps")));
  Value rate = update.spread(s.div(learningRate, correction1));
  return {b.sub(parameter, b.mul(rate, b.div(mean, denominator))), {mean, square}};
}

static const OptimizerRegistration registration({
    "adamw",
    "AdamW with decoupled weight decay (Loshchilov and Hutter 2019)",
    {{"beta1", 0.9, "decay rate of the first moment"},
     {"beta2", 0.999, "decay rate of the second moment"},
     {"eps", 1e-8, "added to the root of the second moment"},
     {"weight_decay", 1e-2, "decoupled weight decay of the parameters that decay"}},
    {"exp_avg", "exp_avg_sq"},
    buildAdamW,
});

} // namespace trainc::train
