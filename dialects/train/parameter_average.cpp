// SPDX-License-Identifier: Apache-2.0
#include "dialects/train/parameter_average.h"

using namespace mlir;

namespace trainc::train {

/// decay * average + (1 - decay) * parameter; of the first update the parameter.
static Value averageAfter(Update &update, Value parameter) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value step = update.scalar("step"), decay = update.scalar(kAverage);
  Value one = s.constant(1, step.getType()), zero = s.constant(0, step.getType());
  Value isFirst = s.create<nn::EqualOp>(step, one);
  Value kept = s.named("share_of_average", s.select(isFirst, zero, decay));
  Value taken = s.named("share_of_parameter", s.sub(one, kept));
  return b.named(kAverage, b.add(b.mul(update.states.back(), update.spread(kept)),
                                 b.mul(parameter, update.spread(taken))));
}

Optimizer withParameterAverage(Optimizer optimizer) {
  optimizer.hyperparameters.push_back(
      Hyperparameter{kAverage, 0.999, "decay of the moving average of the parameters"}.below(1));
  const size_t slot = optimizer.states.size();
  optimizer.states.push_back(kAverage);
  if (!optimizer.kinds.empty())
    optimizer.kinds.emplace_back();
  optimizer.build = [build = optimizer.build](Update &update) {
    Update own = update.with(update.states.drop_back());
    UpdateResult result = build(own);
    result.states.push_back(averageAfter(update, result.parameter));
    return result;
  };
  if (optimizer.stateOf)
    optimizer.stateOf = [slot, stateOf = optimizer.stateOf](const UpdatedParameter &parameter,
                                                            size_t of) {
      return of == slot ? std::optional(StateTensor{kAverage, parameter.shape})
                        : stateOf(parameter, of);
    };
  return optimizer;
}

} // namespace trainc::train
