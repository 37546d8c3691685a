// SPDX-License-Identifier: Apache-2.0
//
// Adagrad (Duchi et al. 2011) with the arithmetic of torch.optim.Adagrad.
#include "dialects/train/optimizer.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildAdagrad(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate"), step = update.scalar("step");
  Value one = s.constant(1, step.getType());
  Value slowing = s.add(one, s.mul(s.sub(step, one), update.scalar("lr_decay")));
  Value rate = s.named("decayed_rate", s.div(learningRate, slowing));
  Value gradient = update.penalizedGradient();
  Value sum = b.named("sum", b.add(update.states[0], b.mul(gradient, gradient)));
  Value root = b.create<nn::SqrtOp>(sum);
  Value denominator = b.named("denominator", b.add(root, update.spread(update.scalar("eps"))));
  Value direction = b.named("direction", b.div(gradient, denominator));
  Value change = b.mul(update.spread(rate), direction);
  return {b.named("parameter", b.sub(update.parameter, change)), {sum}};
}

static const OptimizerRegistration adagradRegistration({
    "adagrad",
    "Adagrad (Duchi et al. 2011)",
    {{"lr_decay", 0, "how fast the learning rate decays with steps"},
     {"eps", 1e-10, "added to the root of the sum of squares"},
     {"weight_decay", 0, "L2 penalty of the parameters that decay"}},
    {"sum"},
    buildAdagrad,
});

} // namespace trainc::train
