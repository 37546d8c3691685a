// SPDX-License-Identifier: Apache-2.0
#include "dialects/train/adam.h"

using namespace mlir;

namespace trainc::train {

AdamMoments adamMoments(Update &update, Value gradient) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value step = update.scalar("step");
  Value beta1 = update.scalar("beta1"), beta2 = update.scalar("beta2");
  Value one = s.constant(1, step.getType());
  Value correction1 = s.named("bias_correction1", s.sub(one, s.create<nn::PowOp>(beta1, step)));
  Value correction2 = s.named("bias_correction2", s.sub(one, s.create<nn::PowOp>(beta2, step)));
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
  return {mean, square, denominator, correction1};
}

Value decayedParameter(Update &update) {
  if (!update.decays)
    return update.parameter;
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate");
  Value one = s.constant(1, learningRate.getType());
  Value kept =
      s.named("decay_factor", s.sub(one, s.mul(learningRate, update.scalar("weight_decay"))));
  return b.named("decayed_parameter", b.mul(update.parameter, update.spread(kept)));
}

UpdateResult adamUpdate(Update &update, Value parameter, Value gradient) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  AdamMoments moments = adamMoments(update, gradient);
  Value direction = b.named("direction", b.div(moments.mean, moments.denominator));
  Value rate = update.spread(
      s.named("step_size", s.div(update.scalar("learning_rate"), moments.correction1)));
  return {b.named("parameter", b.sub(parameter, b.mul(rate, direction))),
          {moments.mean, moments.square}};
}

UpdateResult adamwUpdate(Update &update) {
  Value parameter = decayedParameter(update);
  return adamUpdate(update, parameter, update.gradient);
}

} // namespace trainc::train
