// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/update_parts.h"
#include "dialects/kernel/loop_nest.h"
#include "dialects/train/module_state.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/sharding/gradient_buckets.h"

using namespace mlir;
using namespace trainc;

namespace {

/// The elements of the run whose parameters or state a value of @update is before or after the
/// step.
std::optional<ArenaRange> updatedRun(func::FuncOp update, Value value) {
  auto module = update->getParentOfType<ModuleOp>();
  train::LayoutAttr layout = train::layoutOf(module);
  auto rangeOf = [&](auto role) {
    return ArenaRange{layout.offsetOf(role.getRun(), role.getGroup()),
                      layout.elementsOf(role.getRun(), role.getGroup())};
  };
  auto runOf = [&](train::RoleAttrInterface role) -> std::optional<ArenaRange> {
    if (auto parameters = dyn_cast_or_null<train::RunParametersAttr>(role))
      return rangeOf(parameters);
    if (auto state = dyn_cast_or_null<train::StateAttr>(role))
      return rangeOf(state);
    // Where no arena has all of them, only a part is there.
    if (auto gradients = dyn_cast_or_null<train::RunGradientsAttr>(role);
        gradients && updatesInBackward(module))
      return rangeOf(gradients);
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

/// Whether an element that is loaded is found by a value.
bool loadsElsewhere(kernel::FunctionOp function) {
  return function
      .walk([](kernel::LoadOp load) {
        return load.getIndex() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
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
  return !loadsElsewhere(function);
}

/// Each row of neighbours takes scalars, its own elements and what it alone or all rows have. On a
/// device, parts of states are elsewhere than their parameters' (runtime/cuda/update_shares.h).
bool isMapOfRows(kernel::FunctionOp function, int64_t count) {
  const LoopNest nest(function);
  const bool isRow = function.getForm() == kernel::Form::row && nest.kept == SmallVector<size_t>{0};
  if ((!isRow && function.getForm() != kernel::Form::pointwise) || nest.sizes.size() != 2 ||
      nest.sizes[0] * nest.sizes[1] != count ||
      isa_and_nonnull<kernel::CudaScheduleAttr>(function.getScheduleAttr()))
    return false;
  for (auto access : function.getAccesses().getAsRange<kernel::AccessAttr>()) {
    const ArrayRef<int64_t> strides = access.getStrides();
    const bool isFlat = strides == ArrayRef<int64_t>{nest.sizes[1], 1},
               isOfRow = strides == ArrayRef<int64_t>{1, 0},
               isOfColumn = strides == ArrayRef<int64_t>{0, 1};
    if (strides != ArrayRef<int64_t>{0, 0} &&
        ((!isFlat && !isOfRow && !isOfColumn) || access.getOffset() != 0))
      return false;
  }
  return !loadsElsewhere(function);
}

StringRef kernelOf(kernel::StepOpInterface step) {
  FlatSymbolRefAttr symbol = step ? step.calledKernel() : FlatSymbolRefAttr();
  return symbol ? symbol.getValue() : StringRef();
}

} // namespace

PartedLaunches trainc::updatesInParts(ModuleOp module) {
  PartedLaunches launches;
  auto update = module.lookupSymbol<func::FuncOp>("update");
  const train::TargetAttr target = train::targetOf(module);
  const train::Optimizer *optimizer = train::findOptimizer(train::optimizerNameOf(module));
  const bool isCuda = target && target.getName().getValue() == "cuda";
  // States that lie elsewhere than their parameters are cut elsewhere, too: on a device, and where
  // they are not of the parameters' shapes, of an update that works on whole parameters.
  if (!update || !train::layoutOf(module) ||
      (train::stateLayoutOf(module) && (isCuda || !optimizer || optimizer->stateOf)))
    return launches;
  for (Operation &op : update.front()) {
    std::optional<ArenaRange> run = updatedRun(update, &op);
    if (!run || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    StringRef name = kernelOf(dyn_cast<kernel::StepOpInterface>(op));
    auto function = module.lookupSymbol<kernel::FunctionOp>(name);
    if (!function || (!isFlatMap(function, run->count) && !isMapOfRows(function, run->count)))
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
