// SPDX-License-Identifier: Apache-2.0
//
// attach-optimizer: adds the entry function @update.
//
// The update works on the flat runs that form-buckets laid out, not on single
// parameters: the summed gradients are scaled to their mean (without #train.loss_scale), clipped by
// their global norm (as torch.nn.utils.clip_grad_norm_) or each by its value and handed to the
// optimizer's formula. Buffers become the mean of their new values. All of it is ordinary nn
// operations, which fuse to one reduction and one pointwise kernel per run. The norm is accumulated
// in f64.
//
// @forward_backward gets #train.step_totals as a further result, which micro-batches and ranks sum
// with the gradients. So each rank has the same sums without a word of its own, and the update
// knows on the device what the step's labels weigh and whether it may be taken at all: where the
// loss or the norm is not finite, or the loss above the trainer's limit, or a batch had a fault,
// each new value is the old one; the norm says why it was skipped. States are selected before the
// parameters' formula reads them, so that no old state outlives its place.
#include "dialects/names/node_name.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/updated_parameters.h"
#include <cmath>

using namespace mlir;
using namespace trainc;

namespace {

/// Arguments of @update while it is being built.
struct Signature {
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
};

/// The flat tensors of one run: indexes of its arguments.
struct FlatRun {
  train::Run name;
  int64_t group; // 0: of none
  unsigned parameters, gradients;
  SmallVector<std::optional<unsigned>> states; // by slot
  UpdatedRun described;
};

struct AttachOptimizer : ModulePass<AttachOptimizer, CheckedPass> {
  AttachOptimizer() = default;
  static constexpr StringLiteral flag = "attach-optimizer";
  static constexpr StringLiteral description = "add the update of the flat parameter arenas";

  TextOption kind{*this, "kind", "name", "adamw", "name of the optimizer"};

  void checkOptions(OptionReader &reader) const override {
    const std::vector<std::string> names = train::listOptimizers();
    reader.choice("kind", train::findOptimizer(kind) ? train::ownNameOf(kind) : StringRef(kind),
                  SmallVector<StringRef>(names.begin(), names.end()));
  }

  void runOnOperation() override {
    const train::Optimizer *optimizer = train::findOptimizer(kind);
    train::LayoutAttr layout = train::layoutOf(getOperation());
    if (!layout) {
      emitError(getOperation().getLoc(),
                "attach-optimizer expects a layout; run form-buckets first");
      return signalPassFailure();
    }
    Signature signature;
    RankedTensorType totalsType;
    if (auto function = getOperation().lookupSymbol<func::FuncOp>("forward_backward"))
      totalsType = addTotals(function);
    if (scalesLoss())
      lossScaleIndex =
          declare(signature, RankedTensorType::get({}, Float64Type::get(&getContext())),
                  train::LossScaleAttr::get(&getContext()));
    for (int64_t elements : layout.getRuns())
      if (elements % optimizer->row != 0) {
        emitError(getOperation().getLoc(), "attach-optimizer expects parameters at multiples of ")
            << optimizer->row << " elements for " << StringRef(kind)
            << "; run form-buckets with multiple=" << optimizer->row;
        return signalPassFailure();
      }
    SmallVector<FlatRun> trained;
    for (int64_t group = 0; group < layout.groups(); ++group)
      for (train::Run run : {train::Run::decayed, train::Run::undecayed})
        if (int64_t count = layout.elementsOf(run, group))
          trained.push_back(
              declareRun(signature, run, group, count,
                         describeRun(getOperation(), *optimizer, run, group, elementType())));
    SmallVector<UpdatedRun> described;
    for (const FlatRun &run : trained)
      described.push_back(run.described);
    writeStateLayout(getOperation(), *optimizer, described);
    std::optional<FlatRun> buffers;
    if (int64_t count = layout.elementsOf(train::Run::buffer))
      buffers = declareRun(signature, train::Run::buffer, /*group=*/0, count, UpdatedRun());
    if (totalsType)
      totalsIndex = declare(signature, totalsType, train::StepTotalsAttr::get(&getContext()));
    buildUpdate(*optimizer, signature, trained, buffers);
    train::setOptimizerName(getOperation(), kind);
  }

private:
  bool weighs = false;                                 // the micro-batches' losses have weights
  std::optional<unsigned> totalsIndex, lossScaleIndex; // arguments of @update
  Value applied;                                       // whether the step is taken; null: always

  Type elementType() {
    auto function = getOperation().lookupSymbol<func::FuncOp>("forward_backward");
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleAs<train::ParameterAttr>(function, i))
        return cast<RankedTensorType>(function.getArgument(i).getType()).getElementType();
    return Float32Type::get(&getContext());
  }

  bool scalesLoss() {
    auto function = getOperation().lookupSymbol<func::FuncOp>("forward_backward");
    for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
      if (train::roleAs<train::LossScaleAttr>(function, i))
        return true;
    return false;
  }

  unsigned declare(Signature &signature, Type type, train::RoleAttrInterface role) {
    signature.types.push_back(type);
    signature.attributes.push_back(train::attributesOf(role));
    return signature.types.size() - 1;
  }

  static Value element(nn::Builder &b, Value vector, int64_t index) {
    Value part = b.create<nn::SliceOp>(vector, ArrayRef<int64_t>(index), ArrayRef<int64_t>(1),
                                       ArrayRef<int64_t>(1));
    return b.reshape(part, {});
  }

  static Value isAbove(nn::Builder &b, Value number, double bound) {
    return b.create<nn::GreaterOp>(number, b.constant(bound, number.getType()));
  }

  /// Adds the step's totals to @forward_backward: their type; null where there is no loss.
  RankedTensorType addTotals(func::FuncOp function) {
    Operation *terminator = function.front().getTerminator();
    Value loss, weight, check;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      train::RoleAttrInterface role = train::resultRoleOf(function, i);
      Value value = terminator->getOperand(i);
      if (isa_and_nonnull<train::LossAttr>(role))
        loss = value;
      else if (isa_and_nonnull<train::LossWeightAttr>(role))
        weight = value;
      else if (isa_and_nonnull<train::IndexCheckAttr>(role))
        check = value;
    }
    if (!loss)
      return nullptr;
    weighs = static_cast<bool>(weight);
    MLIRContext *context = &getContext();
    unsigned index = function.getNumArguments();
    function.insertArgument(index, RankedTensorType::get({}, Float64Type::get(context)),
                            train::attributesOf(train::BatchFaultAttr::get(context)),
                            NameLoc::get(StringAttr::get(context, "batch_fault")));
    OpBuilder at(terminator);
    nn::Builder b(at, NameLoc::get(at.getStringAttr("step_totals")));
    Value faulty = isAbove(b, function.getArgument(index), 0);
    if (check)
      faulty = b.create<nn::OrOp>(faulty, isAbove(b, element(b, check, 0), 0));
    Value zero = b.constant(0, loss.getType()), one = b.constant(1, loss.getType());
    Value faults = b.named("faults", b.select(faulty, one, zero)), total = loss;
    if (weight) { // without a counted label the mean is NaN, and no part of the sum
      Value counts = isAbove(b, weight, 0), product = b.mul(loss, weight);
      total = b.named("weighed_loss", b.select(counts, product, zero));
    }
    auto type = RankedTensorType::get({train::kStepTotals}, nn::tensorType(loss).getElementType());
    Value position = b.create<nn::IotaOp>(type.clone(at.getI64Type()), 0);
    // Each number where it belongs, the last one wherever no other does.
    Value totals = b.broadcast(faults, {}, type.getShape());
    auto place = [&](train::StepTotal which, Value number) {
      Value isHere = b.create<nn::EqualOp>(position, b.constant(which, position.getType()));
      Value spread = b.broadcast(number, {}, type.getShape());
      totals = b.select(isHere, spread, totals);
    };
    place(train::kTotalLoss, total);
    place(train::kTotalWeight, weight ? weight : one);
    terminator->insertOperands(terminator->getNumOperands(), totals);
    function.insertResult(function.getNumResults(), type,
                          train::attributesOf(train::StepTotalsAttr::get(context)));
    return type;
  }

  FlatRun declareRun(Signature &signature, train::Run name, int64_t group, int64_t count,
                     UpdatedRun described) {
    MLIRContext *context = &getContext();
    auto type = RankedTensorType::get({count}, elementType());
    FlatRun run{name, group, 0, 0, {}, std::move(described)};
    run.parameters = declare(signature, type, train::RunParametersAttr::get(context, name, group));
    run.gradients = declare(signature, type, train::RunGradientsAttr::get(context, name, group));
    for (auto [slot, elements] : llvm::enumerate(run.described.stateElements))
      run.states.push_back(
          elements == 0
              ? std::nullopt
              : std::optional<unsigned>(declare(
                    signature, RankedTensorType::get({elements}, run.described.stateTypes[slot]),
                    train::StateAttr::get(context, name, static_cast<int64_t>(slot), group))));
    return run;
  }

  /// The norm of the mean gradient, and what each gradient is multiplied by.
  std::pair<Value, Value> normAndFactor(OpBuilder &builder, Block &block, ArrayRef<FlatRun> trained,
                                        llvm::StringMap<Value> &scalars) {
    nn::Builder normBuilder(builder, NameLoc::get(StringAttr::get(&getContext(), "gradient_norm")));
    const bool inBackward = updatesInBackward(getOperation());
    Value scale = gradientScale(normBuilder, block, scalars.lookup("gradient_scale"));
    Value unscaling = scale;
    if (lossScaleIndex)
      unscaling = normBuilder.named("unscaling",
                                    normBuilder.div(scale, block.getArgument(*lossScaleIndex)));
    // Known when the last parameter is updated, so nothing is clipped by it.
    Value norm =
        inBackward
            ? normBuilder.mul(normBuilder.create<nn::SqrtOp>(scalars.lookup("sum_of_squares")),
                              unscaling)
            : gradientNorm(normBuilder, block, trained, unscaling);
    Value factor = inBackward ? normBuilder.named("gradient_factor", unscaling)
                              : clipFactor(normBuilder, norm, unscaling, scalars);
    nn::Builder stepBuilder(builder, NameLoc::get(StringAttr::get(&getContext(), "step")));
    if (totalsIndex)
      norm =
          findApplied(stepBuilder, normBuilder, block, norm, scale, scalars.lookup("loss_limit"));
    return {norm, factor};
  }

  void buildUpdate(const train::Optimizer &optimizer, Signature &signature,
                   ArrayRef<FlatRun> trained, std::optional<FlatRun> buffers) {
    MLIRContext *context = &getContext();
    auto scalarType = RankedTensorType::get({}, Float64Type::get(&getContext()));
    llvm::StringMap<unsigned> scalarArguments;
    SmallVector<StringRef> names{"learning_rate", "step",       "gradient_scale",
                                 "clip_norm",     "clip_value", "loss_limit"};
    if (updatesInBackward(getOperation()))
      names.push_back("sum_of_squares");
    const auto hyperparameters = train::hyperparametersOf(optimizer, getOperation());
    for (const train::Hyperparameter &parameter : hyperparameters)
      names.push_back(parameter.name);
    for (StringRef name : names)
      scalarArguments[name] = declare(
          signature, scalarType, train::ScalarAttr::get(context, StringAttr::get(context, name)));

    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    Location location = NameLoc::get(StringAttr::get(context, optimizer.name));
    auto type = FunctionType::get(context, signature.types, {});
    auto function = builder.create<func::FuncOp>(location, "update", type);
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToStart(block);
    llvm::StringMap<Value> scalars;
    for (auto &entry : scalarArguments)
      scalars[entry.getKey()] = block->getArgument(entry.getValue());

    auto [norm, factor] = normAndFactor(builder, *block, trained, scalars);
    SmallVector<Value> results{norm};
    SmallVector<DictionaryAttr> resultAttributes{
        train::attributesOf(train::GradientNormAttr::get(context))};
    for (const FlatRun &run : trained)
      updateRun(optimizer, builder, *block, run, factor,
                scalarsOf(run.group, hyperparameters, scalars), results, resultAttributes);
    if (buffers)
      replaceBuffers(builder, *block, *buffers, scalars["gradient_scale"], results,
                     resultAttributes);
    builder.create<func::ReturnOp>(location, results);
    function.setType(FunctionType::get(context, signature.types, ValueRange(results).getTypes()));
    function.setAllArgAttrs(signature.attributes);
    function.setAllResultAttrs(resultAttributes);
  }

  /// Norm of the mean gradient over all trained parameters.
  Value gradientNorm(nn::Builder &b, Block &block, ArrayRef<FlatRun> trained, Value scale) {
    Value total;
    for (const FlatRun &run : trained) {
      Value gradient = b.cast(block.getArgument(run.gradients), b.op().getF64Type());
      std::string group = train::ofGroup(getOperation(), run.group);
      Value sum = b.named((train::stringifyRun(run.name) + "_sum_of_squares" + group).str(),
                          b.reduceSum(b.mul(gradient, gradient), {0}));
      total = total ? b.add(total, sum) : sum;
    }
    if (!total)
      return b.constant(0, scale.getType());
    return b.mul(b.create<nn::SqrtOp>(b.named("sum_of_squares", total)), scale);
  }

  /// What turns the summed gradients into those of the step's loss: over the sum of the weights,
  /// which is the number of micro-batches where every label counts.
  Value gradientScale(nn::Builder &b, Block &block, Value perBatch) {
    if (!weighs)
      return perBatch;
    Value weight = element(b, block.getArgument(*totalsIndex), train::kTotalWeight);
    Value one = b.constant(1, perBatch.getType()), sum = b.cast(weight, b.op().getF64Type());
    return b.named("loss_scale", b.div(one, sum));
  }

  /// Sets `applied` and returns the norm as it is reported: no number where the step is not sound,
  /// negative where the loss is above the limit.
  Value findApplied(nn::Builder &b, nn::Builder &normBuilder, Block &block, Value norm, Value scale,
                    Value lossLimit) {
    auto isFinite = [&](Value number) {
      Value size = b.create<nn::AbsOp>(number);
      return b.create<nn::LessOp>(size, b.constant(INFINITY, number.getType()));
    };
    Value totals = block.getArgument(*totalsIndex);
    Value faults = element(b, totals, train::kTotalFaults);
    Value faultless = b.create<nn::EqualOp>(faults, b.constant(0, faults.getType()));
    Value total = element(b, totals, train::kTotalLoss);
    Value finiteNorm = isFinite(norm), finiteLoss = isFinite(total);
    Value finite = b.create<nn::AndOp>(finiteNorm, finiteLoss);
    Value sound = b.named("is_sound", b.create<nn::AndOp>(finite, faultless));
    Value loss = b.named("loss", b.mul(b.cast(total, b.op().getF64Type()), scale));
    Value within = b.named("is_within_limit", b.create<nn::LessOrEqualOp>(loss, lossLimit));
    applied = b.named("is_applied", b.create<nn::AndOp>(sound, within));
    Value skipped = normBuilder.select(sound, normBuilder.create<nn::NegOp>(norm),
                                       normBuilder.constant(NAN, norm.getType()));
    return normBuilder.select(applied, norm, skipped);
  }

  /// `now` where the step is taken, else `before`; made right after `now`.
  Value replaced(nn::Builder &b, Value before, Value now) {
    if (!applied)
      return now;
    OpBuilder::InsertionGuard guard(b.op());
    if (Operation *op = now.getDefiningOp())
      b.op().setInsertionPointAfter(op);
    Value spread = b.broadcast(applied, {}, nn::tensorType(now).getShape());
    Value chosen = b.select(spread, now, before);
    chosen.getDefiningOp()->setLoc(now.getLoc()); // it is what the formula's value was
    NodeName name = nodeName(now.getLoc());
    if (Operation *op = now.getDefiningOp(); op && !name.role.empty())
      op->setLoc(roleLocation("next_" + name.role, withoutRole(now.getLoc())));
    return chosen;
  }

  /// What turns the summed gradient into the mean one, clipped.
  static Value clipFactor(nn::Builder &b, Value norm, Value scale,
                          llvm::StringMap<Value> &scalars) {
    Value guarded = b.add(norm, b.constant(1e-6, norm.getType())); // as PyTorch
    Value ratio = b.div(scalars["clip_norm"], guarded);
    Value coefficient =
        b.named("clip_coefficient", b.create<nn::MinimumOp>(ratio, b.constant(1, norm.getType())));
    return b.named("gradient_factor", b.mul(scale, coefficient));
  }

  /// Each number between -limit and limit, as torch.nn.utils.clip_grad_value_.
  static Value clippedByValue(nn::Builder &b, Value gradient, Value limit) {
    RankedTensorType type = nn::tensorType(gradient);
    Value rounded = b.named("clip_value_rounded", b.cast(limit, type.getElementType()));
    Value most = b.broadcast(rounded, {}, type.getShape());
    Value least = b.named("least", b.create<nn::NegOp>(most));
    Value capped = b.named("capped_gradient", b.create<nn::MinimumOp>(gradient, most));
    return b.named("clipped_gradient", b.create<nn::MaximumOp>(capped, least));
  }

  /// A buffer becomes the mean of what the micro-batches made of it, over all ranks.
  void replaceBuffers(OpBuilder &builder, Block &block, const FlatRun &run, Value scale,
                      SmallVector<Value> &results, SmallVector<DictionaryAttr> &resultAttributes) {
    nn::Builder b(builder, NameLoc::get(StringAttr::get(&getContext(), "buffers")));
    Value sum = block.getArgument(run.gradients);
    RankedTensorType type = nn::tensorType(sum);
    Value factor = b.broadcast(b.cast(scale, type.getElementType()), {}, type.getShape());
    results.push_back(replaced(b, block.getArgument(run.parameters), b.mul(sum, factor)));
    resultAttributes.push_back(
        train::attributesOf(train::RunParametersAttr::get(&getContext(), run.name, run.group)));
  }

  /// What a formula finds under the optimizer's names: the group's own value where it has one.
  llvm::StringMap<Value> scalarsOf(int64_t group, ArrayRef<train::Hyperparameter> hyperparameters,
                                   const llvm::StringMap<Value> &all) {
    llvm::StringMap<Value> seen = all;
    const std::string ofGroup = train::ofGroup(getOperation(), group);
    for (const train::Hyperparameter &own : hyperparameters) {
      if (own.follows.empty())
        continue;
      if (group > 0 && own.name == own.follows + ofGroup)
        seen[own.follows] = all.lookup(own.name);
      seen.erase(own.name);
    }
    return seen;
  }

  void updateRun(const train::Optimizer &optimizer, OpBuilder &builder, Block &block,
                 const FlatRun &run, Value factor, const llvm::StringMap<Value> &scalars,
                 SmallVector<Value> &results, SmallVector<DictionaryAttr> &resultAttributes) {
    const std::string prefix = optimizer.name + train::ofGroup(getOperation(), run.group);
    auto named = [&](StringRef suffix) {
      return NameLoc::get(StringAttr::get(&getContext(), prefix + suffix));
    };
    nn::Builder b(builder,
                  named(run.name == train::Run::decayed ? "_with_decay" : "_without_decay"));
    nn::Builder scalarBuilder(builder, named("_scalars"));
    auto inRows = [&](unsigned argument) {
      Value flat = block.getArgument(argument);
      const int64_t count = nn::tensorType(flat).getNumElements(), row = optimizer.row;
      return row == 1 ? flat : b.reshape(flat, {count / row, row});
    };
    Value parameter = inRows(run.parameters);
    RankedTensorType type = nn::tensorType(parameter);
    Value rounded = b.named("gradient_factor", b.cast(factor, type.getElementType()));
    Value spread = b.broadcast(rounded, {}, type.getShape());
    Value gradient = b.mul(inRows(run.gradients), spread);
    SmallVector<Value> states;
    for (auto [slot, state] : llvm::enumerate(run.states))
      states.push_back(!state                               ? Value()
                       : optimizer.kindOf(slot).sharing > 1 ? block.getArgument(*state)
                                                            : inRows(*state));
    train::Update update(b, scalarBuilder, parameter,
                         clippedByValue(b, gradient, scalars.lookup("clip_value")), states, scalars,
                         run.described.parameters, run.name == train::Run::decayed);
    train::UpdateResult updated = optimizer.build(update);
    for (auto [slot, before] : llvm::enumerate(states)) {
      if (!before)
        continue;
      Value now = updated.states[slot], state = replaced(b, before, now);
      updated.states[slot] = state;
      if (state != now)
        now.replaceUsesWithIf(
            state, [state](OpOperand &use) { return use.getOwner() != state.getDefiningOp(); });
    }
    auto flat = [&](Value value) {
      RankedTensorType of = nn::tensorType(value);
      return of.getRank() == 1 ? value : b.reshape(value, {of.getNumElements()});
    };
    results.push_back(flat(replaced(b, parameter, updated.parameter)));
    resultAttributes.push_back(
        train::attributesOf(train::RunParametersAttr::get(&getContext(), run.name, run.group)));
    for (auto [slot, state] : llvm::enumerate(updated.states)) {
      if (!states[slot])
        continue;
      results.push_back(flat(state));
      resultAttributes.push_back(
          train::attributesOf(train::StateAttr::get(&getContext(), run.name, slot, run.group)));
    }
  }
};

const PassRegistration<AttachOptimizer> attachOptimizerRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createAttachOptimizerPass(StringRef kind) {
  auto pass = std::make_unique<AttachOptimizer>();
  pass->kind = kind.str();
  return pass;
}
