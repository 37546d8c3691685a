// SPDX-License-Identifier: Apache-2.0
//
// Where every tensor lies and how long it lives, and what ranks hold. Sorted and stable.
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/plan_tables.h"
#include "passes/planning/covered_peak.h"
#include "passes/planning/stage_plan.h"
#include "passes/plans/tensor_places.h"
#include "passes/sharding/gradient_buckets.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace trainc {
namespace {

bool isActivation(const planned_tensor &tensor) {
  return tensor.arena == kernel::stringifyArena(kernel::Arena::activations);
}

planned_tensor plannedTensor(Value value, kernel::PlaceAttr place, int step) {
  auto type = cast<RankedTensorType>(value.getType());
  return {tensorName(value),
          kernel::stringifyArena(place.getArena()).str(),
          place.getOffset(),
          bytesOf(type),
          step,
          step,
          elementTypeOf(type).name.str(),
          type.getShape().vec(),
          rowPitchOf(type),
          isa<BlockArgument>(value),
          /*is_at_peak=*/false,
          isa<BlockArgument>(value) ? std::vector<int>() : std::vector<int>{step}};
}

/// Arenas in the order of their enumeration, not of their names.
int arenaNumber(const planned_tensor &tensor) {
  return static_cast<int>(*kernel::symbolizeArena(tensor.arena));
}

using PlacedValue = std::pair<planned_tensor, Value>;

/// The tensors of a function in the order of the plan.
std::vector<PlacedValue> collectTensors(func::FuncOp function) {
  int steps = 0;
  std::vector<PlacedValue> tensors;
  DenseMap<Value, size_t> numbers;
  auto add = [&](Value value, Attribute place, int step) {
    if (auto at = dyn_cast_or_null<kernel::PlaceAttr>(place)) {
      numbers[value] = tensors.size();
      tensors.emplace_back(plannedTensor(value, at, step), value);
    }
  };
  for (BlockArgument argument : function.getArguments())
    add(argument, function.getArgAttr(argument.getArgNumber(), "kernel.place"), 0);
  DenseMap<Value, int> untilAdded; // gradients that the ranks keep in parts
  for (const GradientBucket &bucket : gradientBucketsOf(function))
    for (unsigned gradient : bucket.gradients)
      untilAdded[function.front().getTerminator()->getOperand(gradient)] = bucket.until;
  for (Operation &op : function.front()) {
    if (isa<nn::ConstantOp>(op))
      continue;
    for (Value operand : op.getOperands())
      if (auto known = numbers.find(operand); known != numbers.end()) {
        auto added = untilAdded.find(operand);
        const bool isReturned = added != untilAdded.end() && op.hasTrait<OpTrait::IsTerminator>();
        planned_tensor &tensor = tensors[known->second].first;
        tensor.last = std::max(tensor.last, isReturned ? std::min(added->second, steps) : steps);
        if (!op.hasTrait<OpTrait::IsTerminator>() &&
            (tensor.used_by.empty() || tensor.used_by.back() != steps))
          tensor.used_by.push_back(steps);
      }
    if (auto places = op.getAttrOfType<ArrayAttr>("places"))
      for (auto [result, place] : llvm::zip(op.getResults(), places))
        add(result, place, steps);
    ++steps;
  }
  llvm::StringMap<std::string> titles; // of parameters and buffers, by their names in the file
  for (BlockArgument argument : function.getArguments())
    if (StringRef name = train::nameOf(function, argument.getArgNumber()); !name.empty())
      titles[name] = tensorName(argument);
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands())) {
    auto known = numbers.find(value);
    if (known == numbers.end())
      continue;
    std::string &name = tensors[known->second].first.name;
    if (auto gradient = train::resultRoleAs<train::GradientAttr>(function, i))
      name = "gradient of " + titles.lookup(gradient.getName());
    else if (StringRef output = train::resultNameOf(function, i); !output.empty())
      name = output.str();
  }
  auto order = [](const PlacedValue &placed) {
    const planned_tensor &tensor = placed.first;
    return std::tuple(arenaNumber(tensor), tensor.offset, tensor.first, tensor.last);
  };
  llvm::stable_sort(
      tensors, [&](const PlacedValue &a, const PlacedValue &b) { return order(a) < order(b); });
  return tensors;
}

/// Tensors in one place at one time count once.
void markPeak(planned_entry &entry) {
  std::vector<planning::PlacedBuffer> buffers;
  for (const planned_tensor &tensor : entry.tensors)
    if (isActivation(tensor))
      buffers.push_back({tensor.offset, tensor.bytes, tensor.first, tensor.last});
  entry.peak = planning::coveredPeak(buffers).second;
  for (planned_tensor &tensor : entry.tensors)
    tensor.is_at_peak =
        isActivation(tensor) && tensor.first <= entry.peak && entry.peak <= tensor.last;
}

} // namespace

static constexpr StringLiteral kRunAttribute = "kernel.planned_run";

void setPlannedRun(ModuleOp module, const rank_layout &run) {
  Builder builder(module.getContext());
  auto number = [&](StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  auto flag = [&](StringRef name, bool value) {
    return builder.getNamedAttr(name, builder.getBoolAttr(value));
  };
  module->setAttr(kRunAttribute,
                  builder.getDictionaryAttr(
                      {number("ranks", run.replicas), number("micro_batches", run.micro_batches),
                       flag("shares_state", run.shared == sharing::state),
                       flag("adds_in_turn", run.accumulated == accumulation::running)}));
}

std::optional<rank_layout> plannedRun(ModuleOp module) {
  auto run = module->getAttrOfType<DictionaryAttr>(kRunAttribute);
  if (!run)
    return std::nullopt;
  auto number = [&](StringRef name) { return run.getAs<IntegerAttr>(name).getInt(); };
  auto flag = [&](StringRef name) { return run.getAs<BoolAttr>(name).getValue(); };
  rank_layout layout;
  layout.replicas = layout.ranks_on_host = int(number("ranks"));
  layout.micro_batches = number("micro_batches");
  layout.shared = flag("shares_state") ? sharing::state : sharing::none;
  layout.accumulated = flag("adds_in_turn") ? accumulation::running : accumulation::pairwise;
  return layout;
}

std::vector<Value> tensorsOf(func::FuncOp function) {
  std::vector<Value> values;
  for (const PlacedValue &placed : collectTensors(function))
    values.push_back(placed.second);
  return values;
}

plan describeMemory(ModuleOp module) {
  plan described;
  planned_memory &memory = described.memory;
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bound = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_lower_bound");
  for (int arena = 0; bytes && bound && arena < int(bytes.size()); ++arena)
    memory.arenas.push_back(
        {kernel::stringifyArena(kernel::Arena(arena)).str(), bytes[arena], bound[arena]});
  if (auto frozen = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes"))
    memory.arenas.push_back(
        {kernel::stringifyArena(kernel::Arena::frozen).str(), frozen.getInt(), frozen.getInt()});
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    planned_entry &entry = described.entries.emplace_back();
    entry.name = function.getName().str();
    for (PlacedValue &placed : collectTensors(function))
      entry.tensors.push_back(std::move(placed.first));
    markPeak(entry);
  }
  train::TargetAttr target = train::targetOf(module);
  const bool trains = module.lookupSymbol("forward_backward") && module.lookupSymbol("update");
  if (target && trains && !train::pipelineOf(module)) { // stages have a list of their own
    const planned_stages stages = describeStages(module, target.getName());
    memory.of_ranks = plannedRanks(stages);
    if (std::optional<rank_layout> run = plannedRun(module)) {
      if (stages.shared != sharing::none || !stages.updates_in_parts)
        run->shared = stages.shared;
      memory.in_run = memory_of_ranks(planning::needsOfOne(stages), *run)[0];
    }
  }
  return described;
}

} // namespace trainc
