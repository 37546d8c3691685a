// SPDX-License-Identifier: Apache-2.0
//
// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2): Adam's direction with weight decay in it,
// scaled for each parameter by the ratio of the parameter's norm to the direction's.
#include "dialects/train/adam.h"

using namespace mlir;

namespace trainc::train {

/// The parameters' own step sizes, f64: the learning rate times the trust ratio, which is 1 where
/// one of the norms is zero.
static Value stepSizes(Update &update, Value direction) {
  nn::Builder &s = update.scalarBuilder();
  Value parameterNorm = s.named("parameter_norm", update.normPerParameter(update.parameter));
  Value directionNorm = s.named("direction_norm", update.normPerParameter(direction));
  RankedTensorType type = nn::tensorType(parameterNorm);
  auto forEach = [&](Value scalar) { return s.broadcast(scalar, {}, type.getShape()); };
  Value zero = s.constant(0, type);
  Value ratio = s.div(parameterNorm, directionNorm);
  ratio = s.create<nn::MaximumOp>(ratio, forEach(update.scalar("min_trust_ratio")));
  ratio = s.create<nn::MinimumOp>(ratio, forEach(update.scalar("max_trust_ratio")));
  Value nonzero = s.create<nn::AndOp>(s.create<nn::GreaterOp>(parameterNorm, zero),
                                      s.create<nn::GreaterOp>(directionNorm, zero));
  Value trust = s.named("trust_ratio", s.select(nonzero, ratio, s.constant(1, type)));
  return s.named("step_size", s.mul(trust, forEach(update.scalar("learning_rate"))));
}

static UpdateResult buildLamb(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  AdamMoments moments = adamMoments(update, update.gradient);
  Value inverse = s.named("inverse_correction1", s.create<nn::ReciprocalOp>(moments.correction1));
  Value corrected = b.named("corrected_exp_avg", b.mul(moments.mean, update.spread(inverse)));
  Value direction = b.div(corrected, moments.denominator);
  if (update.decays)
    direction =
        b.add(direction, b.mul(update.parameter, update.spread(update.scalar("weight_decay"))));
  direction = b.named("direction", direction);
  Value rate = b.named("rate", update.spreadPerParameter(stepSizes(update, direction)));
  return {b.named("parameter", b.sub(update.parameter, b.mul(rate, direction))),
          {moments.mean, moments.square}};
}

static const OptimizerRegistration lambRegistration({
    "lamb",
    "Adam with a trust ratio per parameter, for large batches (You et al. 2020)",
    {Hyperparameter{"beta1", 0.9, "decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "decay rate of the second moment"}.below(1),
     {"eps", 1e-6, "added to the root of the second moment"},
     {"weight_decay", 1e-2, "weight decay of the parameters that decay"},
     {"min_trust_ratio", 0, "bound below of a parameter's norm over its update's"},
     Hyperparameter{"max_trust_ratio", 10, "bound above of a parameter's norm over its update's"}
         .upTo(std::numeric_limits<double>::infinity())},
    {"exp_avg", "exp_avg_sq"},
    buildLamb,
});

} // namespace trainc::train
