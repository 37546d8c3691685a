// SPDX-License-Identifier: Apache-2.0
//
// NAdam (Dozat 2016) with the arithmetic of torch.optim.NAdam: its weight decay is an L2 penalty,
// `decoupled_weight_decay` off.
#include "dialects/train/adam.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {

/// Terms of the series below. They fall by half each, and the product that they give counts only
/// while it is not small beside 1.
constexpr int64_t kTerms = 64;

/// Sum over i = 1 to `step` of log(1 - q^i / 2), where log q = `decay`: PyTorch multiplies a factor
/// to the product at each step, which would be a state. As a sum over the terms of the logarithm's
/// series, each geometric in i: -sum over k of 2^-k/k q^k (1 - q^(k step)) / (1 - q^k).
static Value sumOfLogs(Update &update, Value decay, Value step) {
  nn::Builder &s = update.scalarBuilder();
  auto type = RankedTensorType::get({kTerms}, nn::tensorType(step).getElementType());
  SmallVector<double> numbers, weights;
  for (int64_t k = 1; k <= kTerms; ++k) {
    numbers.push_back(static_cast<double>(k));
    weights.push_back(-std::ldexp(1.0, static_cast<int>(-k)) / static_cast<double>(k));
  }
  Value k = s.constant(DenseElementsAttr::get(type, llvm::ArrayRef(numbers)));
  auto forEach = [&](Value scalar) { return s.broadcast(scalar, {}, type.getShape()); };
  Value exponent = s.mul(k, forEach(decay)), steps = forEach(step);
  Value power = s.exp(exponent);
  Value ratio =
      s.div(s.create<nn::Expm1Op>(s.mul(exponent, steps)), s.create<nn::Expm1Op>(exponent));
  Value isConstant = s.create<nn::EqualOp>(exponent, s.constant(0, type));
  Value geometric = s.select(isConstant, steps, s.mul(power, ratio));
  Value weight = s.constant(DenseElementsAttr::get(type, llvm::ArrayRef(weights)));
  return s.named("sum_of_logs", s.reduceSum(s.mul(weight, geometric), {0}));
}

static UpdateResult buildNAdam(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value gradient = update.penalizedGradient();
  AdamMoments moments = adamMoments(update, gradient);
  Value step = update.scalar("step"), beta1 = update.scalar("beta1");
  Value learningRate = update.scalar("learning_rate");
  Value one = s.constant(1, step.getType());
  Value decay = s.named("log_decay", s.scale(update.scalar("momentum_decay"), std::log(0.96)));
  auto momentum = [&](Value at) {
    return s.mul(beta1, s.sub(one, s.scale(s.exp(s.mul(decay, at)), 0.5)));
  };
  Value now = s.named("momentum", momentum(step));
  Value next = s.named("next_momentum", momentum(s.add(step, one)));
  Value product = s.named("momentum_product", s.mul(s.create<nn::PowOp>(beta1, step),
                                                    s.exp(sumOfLogs(update, decay, step))));
  auto share = [&](Value part, Value of) {
    return s.div(s.mul(learningRate, part), s.sub(one, of));
  };
  Value ofGradient = s.named("gradient_rate", share(s.sub(one, now), product));
  Value ofMean = s.named("mean_rate", share(next, s.mul(product, next)));
  Value direction = b.named("direction", b.add(b.mul(gradient, update.spread(ofGradient)),
                                               b.mul(moments.mean, update.spread(ofMean))));
  return {b.named("parameter", b.sub(update.parameter, b.div(direction, moments.denominator))),
          {moments.mean, moments.square}};
}

static const OptimizerRegistration nadamRegistration({
    "nadam",
    "Adam with Nesterov momentum, weight decay as an L2 penalty (Dozat 2016)",
    {Hyperparameter{"beta1", 0.9, "decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "decay rate of the second moment"}.below(1),
     {"eps", 1e-8, "added to the root of the second moment"},
     {"momentum_decay", 4e-3, "how fast the momentum rises to beta1"},
     {"weight_decay", 0, "L2 penalty of the parameters that decay"}},
    {"exp_avg", "exp_avg_sq"},
    buildNAdam,
});

} // namespace trainc::train
