// SPDX-License-Identifier: Apache-2.0
//
// Stochastic gradient descent with momentum, dampening, Nesterov momentum and
// L2 weight decay: the arithmetic of torch.optim.SGD.
#include "dialects/train/optimizer.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildSgd(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value momentum = update.scalar("momentum"), nesterov = update.scalar("nesterov");
  Value step = update.scalar("step");
  Value zero = s.constant(0, step.getType()), one = s.constant(1, step.getType());

  Value gradient = update.penalizedGradient();

  // The first momentum is the gradient itself, undampened. Without momentum the buffer stays as it
  // is, zero or not. Weakness: of a momentum that begins after the first step, the first is
  // dampened.
  Value isPlain = s.create<nn::EqualOp>(momentum, zero);
  Value kept = s.named("share_of_buffer", s.select(isPlain, one, momentum));
  Value undampened = s.create<nn::EqualOp>(step, one);
  Value share = s.select(undampened, one, s.sub(one, update.scalar("dampening")));
  Value taken = s.named("gradient_share", s.select(isPlain, zero, share));
  Value buffer = b.named("momentum_buffer", b.add(b.mul(update.states[0], update.spread(kept)),
                                                  b.mul(gradient, update.spread(taken))));

  // Nesterov: gradient + momentum * buffer, which is the gradient without momentum; else the
  // buffer.
  Value looksAhead =
      s.named("looks_ahead", s.create<nn::OrOp>(s.create<nn::GreaterOp>(nesterov, zero), isPlain));
  Value ofGradient = s.named("share_of_gradient", s.select(looksAhead, one, zero));
  Value ofBuffer = s.named("share_of_momentum", s.select(looksAhead, momentum, one));
  Value direction = b.named("direction", b.add(b.mul(gradient, update.spread(ofGradient)),
                                               b.mul(buffer, update.spread(ofBuffer))));
  Value rate = update.spread(update.scalar("learning_rate"));
  return {b.named("parameter", b.sub(update.parameter, b.mul(rate, direction))), {buffer}};
}

static const OptimizerRegistration sgdRegistration({
    "sgd",
    "stochastic gradient descent with momentum (Sutskever et al. 2013)",
    {{"momentum", 0, "momentum factor"},
     Hyperparameter{"dampening", 0, "dampening of the momentum"}.ofAnySign(),
     Hyperparameter{"nesterov", 0, "1: Nesterov momentum, which needs momentum and no dampening"}
         .asSwitch("momentum", "dampening"),
     {"weight_decay", 0, "L2 penalty of the parameters that decay"}},
    {"momentum_buffer"},
    buildSgd,
});

} // namespace trainc::train
