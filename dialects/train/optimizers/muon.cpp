// SPDX-License-Identifier: Apache-2.0
//
// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) with the arithmetic of
// torch.optim.Muon, but that matrices are orthogonalized in the model's precision and not in bf16.
// Parameters that are not matrices, and those of the group `adamw`, are updated by AdamW.
#include "dialects/train/adam.h"
#include "runtime/kernels/orthogonalize.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {

static constexpr size_t kMomentumSlot = 0, kSquareSlot = 1;
static constexpr llvm::StringLiteral kOtherGroup = "adamw";

/// Not one with an axis of size 1, which exporters give vectors.
static bool isMatrix(const UpdatedParameter &parameter) {
  return parameter.shape.size() == 2 && !llvm::is_contained(parameter.shape, 1) &&
         parameter.group != kOtherGroup;
}

static std::optional<StateTensor> muonState(const UpdatedParameter &parameter, size_t slot) {
  if (slot == kMomentumSlot)
    return StateTensor{isMatrix(parameter) ? "momentum_buffer" : "exp_avg", parameter.shape};
  return isMatrix(parameter) ? std::nullopt
                             : std::optional(StateTensor{"exp_avg_sq", parameter.shape});
}

/// What the learning rate of each matrix is multiplied by: that of Jordan, and Moonshot's
/// (arXiv 2502.16982), by outputs and inputs.
static double originalRatio(const UpdatedParameter &each) {
  if (!isMatrix(each))
    return 0;
  const auto first = static_cast<double>(each.shape[0]), last = static_cast<double>(each.shape[1]);
  return std::sqrt(std::max(1.0, each.fansOutLast ? last / first : first / last));
}
static double ratioToAdamW(const UpdatedParameter &each) {
  if (!isMatrix(each))
    return 0;
  return 0.2 * std::sqrt(static_cast<double>(std::max(each.shape[0], each.shape[1])));
}

static Value orthogonalized(Update &update, Value direction) {
  nn::Builder &b = update.builder();
  RankedTensorType type = nn::tensorType(direction);
  SmallVector<int64_t> matrices;
  int64_t scratch = 1;
  double flops = 0;
  for (const UpdatedParameter &each : update.parameters) {
    if (!isMatrix(each))
      continue;
    const int64_t rows = each.shape[0], columns = each.shape[1];
    matrices.append({each.begin, rows, columns});
    scratch = std::max(scratch, orthogonalize_scratch(rows, columns).end);
    const auto shorter = static_cast<double>(std::min(rows, columns));
    flops += 2 * newton_schulz_steps * shorter *
             (2 * static_cast<double>(rows) * static_cast<double>(columns) + shorter * shorter);
  }
  auto results = update.call(
      "orthogonalize", "orthogonalize",
      {b.op().getDenseI64ArrayAttr(matrices), b.op().getI64IntegerAttr(type.getNumElements())},
      direction, {type, type.clone(ArrayRef(scratch))}, flops);
  return b.named("orthogonal", results[0]);
}

/// The inverse denominators of AdamW's parameters as a tensor like the run, 0 for matrices.
static Value inverseDenominators(Update &update, Value &square) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  RankedTensorType type = nn::tensorType(square);
  SmallVector<int64_t> squares, copies;
  for (const UpdatedParameter &each : update.parameters)
    if (!isMatrix(each)) {
      const int64_t count = each.end - each.begin, at = each.states[kSquareSlot];
      squares.append({each.begin, at, 1, count, 1, 1, 1});
      copies.append({each.begin, at, -1, 1, count, 1});
    }
  Value now = update.meanSquares(update.gradient, squares, type.getNumElements());
  auto spread = [&](Value scalar) {
    return b.broadcast(s.cast(scalar, type.getElementType()), {}, type.getShape());
  };
  Value beta2 = update.scalar("beta2"), one = s.constant(1, beta2.getType());
  Value correction =
      s.named("bias_correction2", s.sub(one, s.create<nn::PowOp>(beta2, update.scalar("step"))));
  square = b.named("exp_avg_sq",
                   b.add(b.mul(square, spread(beta2)),
                         b.mul(now, spread(s.named("one_minus_beta2", s.sub(one, beta2))))));
  Value root = b.mul(b.create<nn::SqrtOp>(square), spread(s.create<nn::RsqrtOp>(correction)));
  Value inverse = b.create<nn::ReciprocalOp>(b.add(root, spread(update.scalar("eps"))));
  Value none = s.constant(0, RankedTensorType::get({}, type.getElementType()));
  return update.multiplyRows(inverse, inverse, none, copies);
}

static UpdateResult buildMuon(Update &update) {
  if (llvm::none_of(update.parameters, isMatrix))
    return adamwUpdate(update);
  const bool isMixed = !llvm::all_of(update.parameters, isMatrix);
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value learningRate = update.scalar("learning_rate"), momentum = update.scalar("momentum");
  Value one = s.constant(1, learningRate.getType()), gradient = update.gradient;
  auto forEach = [&](Value scalar) { return update.repeatPerParameter(scalar); };
  // What each parameter becomes; `others` where the run has AdamW's, too.
  Value matrices, others, beta1 = update.scalar("beta1");
  auto choose = [&](Value ofMatrices, Value ofOthers) {
    return s.add(s.mul(matrices, forEach(ofMatrices)), s.mul(others, forEach(ofOthers)));
  };
  if (isMixed) {
    matrices = update.numberPerParameter([](auto &each) { return isMatrix(each) ? 1.0 : 0.0; });
    others = update.numberPerParameter([](auto &each) { return isMatrix(each) ? 0.0 : 1.0; });
  }
  Value kept = s.named("one_minus_momentum", s.sub(one, momentum));
  Value before =
      isMixed ? update.spreadPerParameter(choose(momentum, beta1)) : update.spread(momentum);
  Value now =
      isMixed ? update.spreadPerParameter(choose(kept, s.sub(one, beta1))) : update.spread(kept);
  Value mean = b.named("momentum_buffer",
                       b.add(b.mul(update.states[kMomentumSlot], before), b.mul(gradient, now)));
  Value isOn = s.create<nn::GreaterOp>(update.scalar("nesterov"), s.constant(0.5, one.getType()));
  Value share = update.spread(s.named("nesterov_share", s.select(isOn, momentum, one)));
  Value direction = b.add(gradient, b.mul(share, b.sub(mean, gradient)));
  Value square = update.states[kSquareSlot];
  if (isMixed) {
    Value ofOthers = b.mul(mean, inverseDenominators(update, square));
    direction = b.add(b.mul(direction, update.spreadPerParameter(matrices)), ofOthers);
  }
  direction = orthogonalized(update, b.named("direction", direction));

  Value matched = update.scalar("match_rms_adamw");
  Value ratio =
      s.add(s.mul(forEach(matched), update.numberPerParameter(ratioToAdamW)),
            s.mul(forEach(s.sub(one, matched)), update.numberPerParameter(originalRatio)));
  if (isMixed) {
    Value correction =
        s.named("bias_correction1", s.sub(one, s.create<nn::PowOp>(beta1, update.scalar("step"))));
    ratio = s.add(ratio, s.mul(others, forEach(s.create<nn::ReciprocalOp>(correction))));
  }
  Value steps = s.named("step_size", s.mul(ratio, forEach(learningRate)));
  Value rate = b.named("rate", update.spreadPerParameter(steps));
  return {b.named("parameter", b.sub(decayedParameter(update), b.mul(rate, direction))),
          {mean, square}};
}

static const OptimizerRegistration muonRegistration({
    "muon",
    "Muon for matrices (Jordan et al. 2024); AdamW for other parameters, and for all of the group "
    "adamw",
    {Hyperparameter{"momentum", 0.95, "decay rate of the mean of a matrix's gradients"}.below(1),
     Hyperparameter{"nesterov", 1, "1: the gradient is added to the mean once more; 0: it is not"}
         .upTo(1),
     Hyperparameter{
         "match_rms_adamw", 0,
         "1: a matrix's step is 0.2 times the root of its longer side, as large as one of "
         "AdamW; 0: the root of outputs over inputs, 1 at least"}
         .upTo(1),
     Hyperparameter{"beta1", 0.9, "AdamW's decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "AdamW's decay rate of the second moment"}.below(1),
     {"eps", 1e-8, "added to the root of AdamW's second moment"},
     {"weight_decay", 0.1, "decoupled weight decay of the parameters that decay"}},
    {"momentum_buffer", "exp_avg_sq"},
    buildMuon,
    muonState,
});

} // namespace trainc::train
