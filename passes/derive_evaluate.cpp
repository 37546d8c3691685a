// SPDX-License-Identifier: Apache-2.0
//
// derive-evaluate: the entry function @evaluate, which is the model in inference mode.
//
// Problem: evaluation and prediction compute what the model's user gets; training differs. It
// replaces buffers besides, drops activations, and draws other random numbers in each
// micro-batch. Method: @evaluate is a copy of @model without the buffers' new values, and in a
// program that does not predict without outputs. Of each nn.training_form it keeps the form of
// inference, @model that of training: no later pass meets one. Where @model draws random numbers,
// it gets the argument #train.random_key, which they follow from; those of @evaluate are always the
// same. It comes before differentiate, which turns @model itself into the training step; a program
// for prediction alone keeps the copy only. Where a loss has several parts with weights of their
// own, another copy, @count_labels, computes these weights alone, which follow from the batch.
#include "dialects/nn/builder.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"

using namespace mlir;
using namespace trainc;

namespace {

struct DeriveEvaluate : ModulePass<DeriveEvaluate, CheckedPass> {
  DeriveEvaluate() = default;
  static constexpr StringLiteral flag = "derive-evaluate";
  static constexpr StringLiteral description =
      "make @evaluate, the model in inference mode, from @model";

  TextOption only{*this, "only", "true|false", "false", "the model is not trained: drop @model"};

  TextOption outputs{*this, "outputs", "true|false", "true",
                     "false: @evaluate computes losses and metrics alone"};

  std::pair<bool, bool> read(OptionReader &reader) const {
    return {reader.flag("only", only), reader.flag("outputs", outputs)};
  }
  void checkOptions(OptionReader &reader) const override { read(reader); }

  void runOnOperation() override {
    OptionReader reader = silentReader();
    auto [isAlone, hasOutputs] = read(reader);
    auto model = getOperation().lookupSymbol<func::FuncOp>("model");
    if (!model) {
      emitError(getOperation().getLoc(), "derive-evaluate expects a function @model");
      return signalPassFailure();
    }
    auto evaluate = model.clone();
    evaluate.setName("evaluate");
    model->getBlock()->getOperations().insertAfter(model->getIterator(), evaluate);
    if (!isAlone)
      deriveCount(model);
    bool differs = drop<train::NewValueAttr>(evaluate); // it leaves buffers as they are
    if (!hasOutputs)
      differs |= drop<train::OutputAttr>(evaluate);
    differs |= chooseForm(evaluate, [](nn::TrainingFormOp op) { return op.getInference(); });
    if (isAlone) {
      model.erase();
    } else {
      chooseForm(model, [](nn::TrainingFormOp op) { return op.getTraining(); });
      addRandomKey(model);
    }
    if (differs && failed(simplify(evaluate)))
      signalPassFailure();
  }

private:
  static bool isPartWeight(func::FuncOp function, unsigned result) {
    auto weight = train::resultRoleAs<train::LossWeightAttr>(function, result);
    return weight && weight.getPart();
  }

  /// @count_labels: of a loss of several parts what each weighs in the micro-batch, and nothing
  /// else.
  static void deriveCount(func::FuncOp model) {
    auto count = model.clone();
    count.setName("count_labels");
    drop(count, [&](unsigned result) { return !isPartWeight(count, result); });
    if (count.getNumResults() == 0)
      return count.erase();
    model->getBlock()->getOperations().insertAfter(model->getIterator(), count);
    chooseForm(count, [](nn::TrainingFormOp op) { return op.getTraining(); });
    for (int i = static_cast<int>(count.getNumArguments()) - 1; i >= 0; --i)
      if (count.getArgument(i).use_empty())
        count.eraseArgument(i);
    addRandomKey(count);
  }

  /// Drops such results. Whether there were any.
  static bool drop(func::FuncOp function, llvm::function_ref<bool(unsigned)> isDropped) {
    llvm::BitVector dropped(function.getNumResults());
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      dropped[i] = isDropped(i);
    function.getBody().front().getTerminator()->eraseOperands(dropped);
    function.eraseResults(dropped);
    return dropped.any();
  }
  template <typename Role> static bool drop(func::FuncOp function) {
    return drop(function,
                [&](unsigned result) { return bool(train::resultRoleAs<Role>(function, result)); });
  }

  /// Whether there was anything to choose.
  static bool chooseForm(func::FuncOp function,
                         llvm::function_ref<Value(nn::TrainingFormOp)> choose) {
    bool any = false;
    function.walk([&](nn::TrainingFormOp op) {
      op.replaceAllUsesWith(choose(op));
      op.erase();
      any = true;
    });
    // What only the other form needed.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    return any;
  }

  static void addRandomKey(func::FuncOp model) {
    SmallVector<nn::RandomBitsOp> operations; // those with keys of their own keep them
    for (auto op : model.getBody().front().getOps<nn::RandomBitsOp>())
      if (!op.getKeys())
        operations.push_back(op);
    SmallVector<nn::AttentionOp> attentions;
    for (auto op : model.getBody().front().getOps<nn::AttentionOp>())
      if (op.getDropped() && !op.getKey())
        attentions.push_back(op);
    if (operations.empty() && attentions.empty())
      return;
    MLIRContext *context = model.getContext();
    unsigned index = model.getNumArguments();
    model.insertArgument(index, train::randomKeyType(context),
                         train::attributesOf(train::RandomKeyAttr::get(context)),
                         NameLoc::get(StringAttr::get(context, "random_key")));
    for (nn::RandomBitsOp op : operations) {
      OpBuilder at(op);
      nn::Builder builder(at, op.getLoc());
      op.getKeysMutable().assign(
          builder.broadcast(model.getArgument(index), {}, op.getType().getShape()));
    }
    for (nn::AttentionOp op : attentions)
      op.getMasksAndKeyMutable().append(model.getArgument(index));
  }
};

const PassRegistration<DeriveEvaluate> deriveEvaluateRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createDeriveEvaluatePass(bool only, bool outputs) {
  auto pass = std::make_unique<DeriveEvaluate>();
  pass->only = only ? "true" : "false";
  pass->outputs = outputs ? "true" : "false";
  return pass;
}
