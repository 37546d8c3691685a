// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/update_parts.h"
#include "dialects/kernel/loop_nest.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace trainc;

namespace {

/// The run whose parameters or state a value of @update is before or after the step.
std::optional<train::Run> updatedRun(func::FuncOp update, Value value) {
  auto runOf = [](train::RoleAttrInterface role) -> std::optional<train::Run> {
    if (auto parameters = dyn_cast_or_null<train::RunParametersAttr>(role))
      return parameters.getRun();
    if (auto state = dyn_cast_or_null<train::StateAttr>(role))
      return state.getRun();
    return std::nullopt;
  };
  if (auto argument = dyn_cast<BlockArgument>(value))
    return runOf(train::roleOf(update, argument.getArgNumber()));
  for (OpOperand &use : value.getUses())
    if (use.getOwner() == update.front().getTerminator())
      if (auto run = runOf(train::resultRoleOf(update, use.getOperandNumber())))
        return run;
  return std::nullopt;
}

std::optional<train::Run> updatedRun(func::FuncOp update, Operation *step) {
  for (ValueRange values : {ValueRange(step->getOperands()), ValueRange(step->getResults())})
    for (Value value : values)
      if (auto run = updatedRun(update, value))
        return run;
  return std::nullopt;
}

/// Each point takes scalars and the elements with its own number.
bool isFlatMap(kernel::FunctionOp function, int64_t count) {
  const LoopNest nest(function);
  if (function.getForm() != kernel::Form::pointwise || nest.sizes.size() != 1 ||
      nest.sizes[0] != count)
    return false;
  for (auto access : function.getAccesses().getAsRange<kernel::AccessAttr>())
    if (access.getStrides() != ArrayRef<int64_t>{0} &&
        (access.getStrides() != ArrayRef<int64_t>{1} || access.getOffset() != 0))
      return false;
  return !function
              .walk([](kernel::LoadOp load) {
                return load.getIndex() ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

} // namespace

llvm::StringMap<ArenaRange> trainc::updatesInParts(ModuleOp module, StringRef target) {
  llvm::StringMap<ArenaRange> ranges;
  auto update = module.lookupSymbol<func::FuncOp>("update");
  train::LayoutAttr layout = train::layoutOf(module);
  if (!update || !layout || target != "cpu")
    return ranges;
  auto kernelOf = [](kernel::StepOpInterface step) {
    FlatSymbolRefAttr symbol = step ? step.calledKernel() : FlatSymbolRefAttr();
    return symbol ? symbol.getValue() : StringRef();
  };
  for (Operation &op : update.front()) {
    std::optional<train::Run> run = updatedRun(update, &op);
    if (!run || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    StringRef name = kernelOf(dyn_cast<kernel::StepOpInterface>(op));
    auto function = module.lookupSymbol<kernel::FunctionOp>(name);
    const int64_t count = layout.elementsOf(*run);
    if (!function || !isFlatMap(function, count) ||
        !ranges.try_emplace(name, ArenaRange{layout.offsetOf(*run), count}).second)
      return {};
  }
  // Elsewhere too: then its function has no range.
  bool usedOnce = true;
  module.walk([&](kernel::StepOpInterface step) {
    if (step->getParentOfType<func::FuncOp>() != update && ranges.contains(kernelOf(step)))
      usedOnce = false;
  });
  return usedOnce ? ranges : llvm::StringMap<ArenaRange>();
}
