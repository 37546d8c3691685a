// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/update_parts.h"
#include "dialects/kernel/loop_nest.h"
#include "dialects/train/module_state.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace trainc;

namespace {

/// The elements of the run whose parameters or state a value of @update is before or after the
/// step.
std::optional<ArenaRange> updatedRun(func::FuncOp update, Value value) {
  train::LayoutAttr layout = train::layoutOf(update->getParentOfType<ModuleOp>());
  auto rangeOf = [&](auto role) {
    return ArenaRange{layout.offsetOf(role.getRun(), role.getGroup()),
                      layout.elementsOf(role.getRun(), role.getGroup())};
  };
  auto runOf = [&](train::RoleAttrInterface role) -> std::optional<ArenaRange> {
    if (auto parameters = dyn_cast_or_null<train::RunParametersAttr>(role))
      return rangeOf(parameters);
    if (auto state = dyn_cast_or_null<train::StateAttr>(role))
      return rangeOf(state);
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

std::optional<ArenaRange> updatedRun(func::FuncOp update, Operation *step) {
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

StringRef kernelOf(kernel::StepOpInterface step) {
  FlatSymbolRefAttr symbol = step ? step.calledKernel() : FlatSymbolRefAttr();
  return symbol ? symbol.getValue() : StringRef();
}

} // namespace

PartedLaunches trainc::updatesInParts(ModuleOp module) {
  PartedLaunches launches;
  auto update = module.lookupSymbol<func::FuncOp>("update");
  if (!update || !train::layoutOf(module) || train::stateLayoutOf(module))
    return launches; // states that lie elsewhere than their parameters are cut elsewhere, too
  for (Operation &op : update.front()) {
    std::optional<ArenaRange> run = updatedRun(update, &op);
    if (!run || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    StringRef name = kernelOf(dyn_cast<kernel::StepOpInterface>(op));
    auto function = module.lookupSymbol<kernel::FunctionOp>(name);
    if (!function || !isFlatMap(function, run->count))
      return PartedLaunches();
    launches[&op] = *run;
  }
  // Elsewhere too: then its function has no range.
  const llvm::StringSet<> kernels = kernelsOf(launches);
  bool onlyThese = true;
  module.walk([&](kernel::StepOpInterface step) {
    if (kernels.contains(kernelOf(step)) && !launches.contains(step))
      onlyThese = false;
  });
  return onlyThese ? launches : PartedLaunches();
}

llvm::StringSet<> trainc::kernelsOf(const PartedLaunches &launches) {
  llvm::StringSet<> kernels;
  for (auto &[launch, range] : launches)
    kernels.insert(kernelOf(dyn_cast<kernel::StepOpInterface>(launch)));
  return kernels;
}
