// SPDX-License-Identifier: Apache-2.0
//
// The recompute plan, read off the placed steps. And what less memory would cost, of a module that
// is not there yet.
#include "dialects/kernel/kernel.h"
#include "dialects/names/recomputed_name.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "passes/plans/tensor_places.h"
#include "passes/recompute/recompute_planner.h"
#include "runtime/byte_text.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

/// Steps of the forward pass: what the results that are not gradients come from.
llvm::DenseSet<Operation *> forwardSteps(func::FuncOp function) {
  llvm::DenseSet<Operation *> found;
  for (OpOperand &result : function.front().getTerminator()->getOpOperands())
    if (!train::resultRoleAs<train::GradientAttr>(function, result.getOperandNumber()))
      found.insert(result.get().getDefiningOp());
  for (Operation &op : llvm::reverse(function.front()))
    if (found.contains(&op))
      for (Value operand : op.getOperands())
        found.insert(operand.getDefiningOp());
  return found;
}

void listSteps(func::FuncOp function, planned_recompute &plan) {
  SymbolTableCollection symbols;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    std::string tensors;
    for (Value result : step->getResults())
      if (std::string name = tensorName(result); StringRef(name).starts_with(recomputedPrefix))
        tensors += (tensors.empty() ? "" : ", ") + name.substr(recomputedPrefix.size());
    if (tensors.empty())
      continue;
    kernel::StepCost cost = step.cost(symbols);
    plan.steps.push_back({tensors, cost.flops, cost.bytes()});
  }
}

void listKept(func::FuncOp function, planned_recompute &plan) {
  llvm::DenseSet<Operation *> forward = forwardSteps(function);
  DenseMap<Operation *, int> numbers;
  for (Operation &op : function.front())
    if (!isa<nn::ConstantOp>(op))
      numbers.try_emplace(&op, int(numbers.size()));
  for (auto step : function.front().getOps<kernel::StepOpInterface>())
    for (OpResult result : step->getResults()) {
      kernel::PlaceAttr place = step.resultPlace(result.getResultNumber());
      if (!forward.contains(step) || !place || place.getArena() != kernel::Arena::activations)
        continue;
      int last = -1;
      for (Operation *reader : result.getUsers())
        if (!forward.contains(reader) && !reader->hasTrait<OpTrait::IsTerminator>())
          last = std::max(last, numbers[reader]);
      if (last >= 0)
        plan.kept.push_back({tensorName(result), bytesOf(result.getType()), numbers[step], last});
    }
  llvm::stable_sort(plan.kept,
                    [](const kept_tensor &a, const kept_tensor &b) { return a.bytes > b.bytes; });
}

} // namespace

planned_recompute describeRecompute(ModuleOp module) {
  planned_recompute plan;
  plan.rule = "none";
  plan.in_stages = !module.lookupSymbol("forward_backward");
  plan.bytes = plan.kept_bytes = describeMemory(module).memory.bytes();
  if (auto chosen = module->getAttrOfType<DictionaryAttr>("kernel.recompute")) {
    plan.rule = chosen.getAs<StringAttr>("rule").str();
    plan.kept_bytes = chosen.getAs<IntegerAttr>("kept_bytes").getInt();
    plan.time = chosen.getAs<FloatAttr>("time").getValueAsDouble();
    plan.flops = chosen.getAs<FloatAttr>("flops").getValueAsDouble();
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && !train::isUpdate(function)) {
      listSteps(function, plan);
      if (function.getName() == "forward_backward")
        listKept(function, plan);
    }
  return plan;
}

std::string memoryCurveText(ModuleOp module, const RecomputeOptions &options,
                            const PlacementOptions &placement) {
  RecomputePlanner planner(module, options, placement);
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "--memory-budget, bytes               time   flops  as multiples of keeping all\n";
  for (const RecomputePlan &plan : planner.curve())
    out << llvm::format("%22lld  %10s  %.3f   %.3f\n", (long long)plan.bytes,
                        byte_text(plan.bytes).c_str(), plan.time / planner.keepAll().time,
                        plan.flops / planner.keepAll().flops);
  return text;
}

} // namespace trainc
