// SPDX-License-Identifier: Apache-2.0
//
// RMSProp (Tieleman and Hinton 2012) with the arithmetic of torch.optim.RMSprop, `centered` off.
#include "dialects/train/optimizer.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildRmsProp(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value alpha = update.scalar("alpha");
  Value rest = s.named("one_minus_alpha", s.sub(s.constant(1, alpha.getType()), alpha));
  Value gradient = update.penalizedGradient();
  Value square =
      b.named("square_avg", b.add(b.mul(update.states[0], update.spread(alpha)),
                                  b.mul(b.mul(gradient, gradient), update.spread(rest))));
  Value root = b.create<nn::SqrtOp>(square);
  Value denominator = b.named("denominator", b.add(root, update.spread(update.scalar("eps"))));
  Value buffer = b.named("momentum_buffer",
                         b.add(b.mul(update.states[1], update.spread(update.scalar("momentum"))),
                               b.div(gradient, denominator)));
  Value change = b.mul(update.spread(update.scalar("learning_rate")), buffer);
  return {b.named("parameter", b.sub(update.parameter, change)), {square, buffer}};
}

static const OptimizerRegistration rmspropRegistration({
    "rmsprop",
    "RMSProp with momentum (Tieleman and Hinton 2012)",
    {Hyperparameter{"alpha", 0.99, "decay rate of the mean square"}.upTo(1),
     {"eps", 1e-8, "added to the root of the mean square"},
     {"momentum", 0, "momentum factor"},
     {"weight_decay", 0, "L2 penalty of the parameters that decay"}},
    {"square_avg", "momentum_buffer"},
    buildRmsProp,
});

} // namespace trainc::train
