// SPDX-License-Identifier: Apache-2.0
//
// copy-parameters: 16-bit copies of the parameters that products read.
//
// Problem: set-precision rounds each parameter where a product reads it, in every micro-batch, with
// kernels that do nothing else. Method: @forward_backward and @evaluate get the rounded parameter
// as an argument (#train.parameter_copy), and @update writes it: the update is pointwise over flat
// runs, so the copy of a run is one more result of the same kernel. The copies of a run lie in its
// order after the parameters. @round_parameters makes all of them; the trainer runs it where
// something else than @update has written parameters. Weakness: a run has a copy as a whole, also
// of those that no product reads.
#include "dialects/elements/element_type.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/train/module_state.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include <map>

using namespace mlir;

namespace trainc {
namespace {

using RunOfGroup = std::pair<train::Run, int64_t>;

struct CopyParameters : ModulePass<CopyParameters> {
  static constexpr StringLiteral flag = "copy-parameters";
  static constexpr StringLiteral description =
      "let the update write 16-bit copies of the parameters that products read";

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("forward_backward");
    auto update = getOperation().lookupSymbol<func::FuncOp>("update");
    if (!step || !update || !train::layoutOf(getOperation())) {
      emitError(getOperation().getLoc(),
                "copy-parameters expects @forward_backward, @update and a layout; run "
                "attach-optimizer first");
      return signalPassFailure();
    }
    runs.clear();
    readCopies(step);
    if (auto evaluate = getOperation().lookupSymbol<func::FuncOp>("evaluate"))
      readCopies(evaluate);
    if (runs.empty())
      return;
    writeCopies(update);
    addRounding(update.getLoc());
  }

private:
  std::map<RunOfGroup, Type> runs; // those with copies, and the copies' type of elements

  void readCopies(func::FuncOp function) {
    for (unsigned i = 0, count = function.getNumArguments(); i < count; ++i)
      if (auto role = train::roleAs<train::ParameterAttr>(function, i))
        if (!train::storedTypeOf(getOperation(), role.getName())) // read as it is stored
          readCopy(function, i, role);
  }

  /// Gives the function the copy of a parameter in place of the casts that round it.
  void readCopy(func::FuncOp function, unsigned index, train::ParameterAttr role) {
    SmallVector<nn::CastOp> casts;
    for (Operation *reader : function.getArgument(index).getUsers()) {
      auto cast = dyn_cast<nn::CastOp>(reader);
      Type element = cast ? cast.getType().getElementType() : Type();
      if (element && isNarrowFloat(element) &&
          runs.try_emplace({role.getRun(), role.getGroup()}, element).first->second == element)
        casts.push_back(cast);
    }
    if (casts.empty())
      return;
    RankedTensorType type = casts.front().getType();
    auto title = StringAttr::get(&getContext(), role.getTitle().getValue() + "." +
                                                    elementTypeOf(type.getElementType()).name);
    const unsigned copy = function.getNumArguments();
    function.insertArgument(
        copy, type,
        train::attributesOf(train::ParameterCopyAttr::get(&getContext(), role.getName(), title)),
        NameLoc::get(title));
    for (nn::CastOp cast : casts) {
      cast.replaceAllUsesWith(function.getArgument(copy));
      cast.erase();
    }
  }

  train::RunCopiesAttr roleOfCopies(RunOfGroup run) {
    return train::RunCopiesAttr::get(&getContext(), run.first, run.second);
  }

  void writeCopies(func::FuncOp update) {
    Operation *end = update.front().getTerminator();
    OpBuilder at(end);
    for (unsigned i = 0, count = update.getNumResults(); i < count; ++i) {
      auto role = train::resultRoleAs<train::RunParametersAttr>(update, i);
      const RunOfGroup run = role ? RunOfGroup(role.getRun(), role.getGroup()) : RunOfGroup();
      if (!role || !runs.count(run))
        continue;
      Value parameters = end->getOperand(i); // whose node's name the copies have, too
      nn::Builder builder(at, roleLocation("copies", withoutRole(parameters.getLoc())));
      Value copies = builder.cast(parameters, runs.at(run));
      end->insertOperands(end->getNumOperands(), copies);
      update.insertResult(update.getNumResults(), copies.getType(),
                          train::attributesOf(roleOfCopies(run)));
    }
  }

  void addRounding(Location location) {
    MLIRContext *context = &getContext();
    const train::LayoutAttr layout = train::layoutOf(getOperation());
    OpBuilder at = OpBuilder::atBlockEnd(getOperation().getBody());
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> arguments, results;
    for (const auto &[run, element] : runs) {
      types.push_back(
          RankedTensorType::get({layout.elementsOf(run.first, run.second)}, at.getF32Type()));
      arguments.push_back(
          train::attributesOf(train::RunParametersAttr::get(context, run.first, run.second)));
      results.push_back(train::attributesOf(roleOfCopies(run)));
    }
    auto function = at.create<func::FuncOp>(location, "round_parameters",
                                            FunctionType::get(context, types, {}));
    Block *block = function.addEntryBlock();
    at.setInsertionPointToStart(block);
    SmallVector<Value> copies;
    for (const auto &[run, element] : runs) {
      const std::string name =
          (train::stringifyRun(run.first) + "_copies" + train::ofGroup(getOperation(), run.second))
              .str();
      nn::Builder builder(at, NameLoc::get(at.getStringAttr(name)));
      copies.push_back(builder.cast(block->getArgument(copies.size()), element));
    }
    at.create<func::ReturnOp>(location, copies);
    function.setType(FunctionType::get(context, types, ValueRange(copies).getTypes()));
    function.setAllArgAttrs(arguments);
    function.setAllResultAttrs(results);
  }
};

PassRegistration<CopyParameters> copyParametersRegistration;

} // namespace

std::unique_ptr<Pass> createCopyParametersPass() { return std::make_unique<CopyParameters>(); }

} // namespace trainc
