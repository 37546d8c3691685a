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
  Value correction1 = s.named("bias_correction1", s.sub(one, s.create<nn::PowOp>(beta1, step)));
  Value correction2 = s.named("bias_correction2", s.sub(one, s.create<nn::PowOp>(beta2, step)));

  Value parameter = update.parameter, gradient = update.gradient;
  if (update.decays) {
    Value kept =
        s.named("decay_factor", s.sub(one, s.mul(learningRate, update.scalar("weight_decay"))));
    parameter = b.named("decayed_parameter", b.mul(parameter, update.spread(kept)));
  }
  Value rest1 = s.named("one_minus_beta1", s.sub(one, beta1));
  Value rest2 = s.named("one_minus_beta2", s.sub(one, beta2));
  Value mean = b.named("exp_avg", b.add(b.mul(update.states[0], update.spread(beta1)),
                                        b.mul(gradient, update.spread(rest1))));
  Value square =
      b.named("exp_avg_sq", b.add(b.mul(update.states[1], update.spread(beta2)),
                                  b.mul(b.mul(gradient, gradient), update.spread(rest2))));
  Value root = b.create<nn::SqrtOp>(square);
  Value rootCorrection = s.named("inverse_root_correction2", s.create<nn::RsqrtOp>(correction2));
  Value scaled = b.named("corrected_root", b.mul(root, update.spread(rootCorrection)));
  Value denominator = b.named("denominator", b.add(scaled, update.spread(update.scalar("eps"))));
  Value rate = update.spread(s.named("step_size", s.div(learningRate, correction1)));
  Value change = b.mul(rate, b.named("direction", b.div(mean, denominator)));
  return {b.named("parameter", b.sub(parameter, change)), {mean, square}};
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
