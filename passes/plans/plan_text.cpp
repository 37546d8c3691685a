// SPDX-License-Identifier: Apache-2.0
//
// The memory plan as a table and as text: what trainc writes to the output folder and
// trainc-inspect shows. Sorted and stable.
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "passes/planning/covered_peak.h"
#include "passes/plans/tensor_places.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/stages/pipeline_plan.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

bool isActivation(const PlannedTensor &tensor) {
  return tensor.arena == kernel::stringifyArena(kernel::Arena::activations);
}

PlannedTensor plannedTensor(Value value, kernel::PlaceAttr place, int step) {
  auto type = cast<RankedTensorType>(value.getType());
  return {tensorName(value),
          kernel::stringifyArena(place.getArena()).str(),
          place.getOffset(),
          bytesOf(type),
          step,
          step,
          elementTypeOf(type).name.str(),
          type.getShape().vec(),
          isa<BlockArgument>(value)};
}

/// Arenas in the order of their enumeration, not of their names.
int arenaNumber(const PlannedTensor &tensor) {
  return static_cast<int>(*kernel::symbolizeArena(tensor.arena));
}

void collectTensors(func::FuncOp function, PlannedEntry &entry) {
  std::vector<PlannedTensor> &tensors = entry.tensors;
  DenseMap<Value, size_t> numbers;
  auto add = [&](Value value, Attribute place, int step) {
    if (auto at = dyn_cast_or_null<kernel::PlaceAttr>(place)) {
      numbers[value] = tensors.size();
      tensors.push_back(plannedTensor(value, at, step));
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
        int &last = tensors[known->second].last;
        last = std::max(last, isReturned ? added->second : entry.steps);
      }
    if (auto places = op.getAttrOfType<ArrayAttr>("places"))
      for (auto [result, place] : llvm::zip(op.getResults(), places))
        add(result, place, entry.steps);
    ++entry.steps;
  }
  --entry.steps;                       // the return
  llvm::StringMap<std::string> titles; // of parameters and buffers, by their names in the file
  for (BlockArgument argument : function.getArguments())
    if (StringRef name = train::nameOf(function, argument.getArgNumber()); !name.empty())
      titles[name] = tensorName(argument);
  for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands())) {
    auto known = numbers.find(value);
    if (known == numbers.end())
      continue;
    std::string &name = tensors[known->second].name;
    if (auto gradient = train::resultRoleAs<train::GradientAttr>(function, i))
      name = "gradient of " + titles.lookup(gradient.getName());
    else if (StringRef output = train::resultNameOf(function, i); !output.empty())
      name = output.str();
  }
  llvm::stable_sort(tensors, [](const PlannedTensor &a, const PlannedTensor &b) {
    return std::tuple(arenaNumber(a), a.offset, a.first, a.last) <
           std::tuple(arenaNumber(b), b.offset, b.first, b.last);
  });
}

/// Tensors in one place at one time count once.
void markPeak(PlannedEntry &entry) {
  std::vector<planning::PlacedBuffer> buffers;
  for (const PlannedTensor &tensor : entry.tensors)
    if (isActivation(tensor))
      buffers.push_back({tensor.offset, tensor.bytes, tensor.first, tensor.last});
  entry.peak = planning::coveredPeak(buffers).second;
  for (PlannedTensor &tensor : entry.tensors)
    tensor.isAtPeak =
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

int64_t MemoryTable::arenaBytes() const {
  int64_t sum = 0;
  for (const PlannedArena &arena : arenas)
    sum += arena.bytes;
  return sum;
}

MemoryTable describeMemory(ModuleOp module) {
  MemoryTable plan;
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bound = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_lower_bound");
  for (int arena = 0; bytes && bound && arena < int(bytes.size()); ++arena)
    plan.arenas.push_back(
        {kernel::stringifyArena(kernel::Arena(arena)).str(), bytes[arena], bound[arena]});
  if (auto frozen = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes"))
    plan.arenas.push_back(
        {kernel::stringifyArena(kernel::Arena::frozen).str(), frozen.getInt(), frozen.getInt()});
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    PlannedEntry &entry = plan.entries.emplace_back();
    entry.name = function.getName().str();
    collectTensors(function, entry);
    markPeak(entry);
  }
  train::TargetAttr target = train::targetOf(module);
  const bool trains = module.lookupSymbol("forward_backward") && module.lookupSymbol("update");
  if (target && trains && !train::pipelineOf(module)) { // stages have a list of their own
    const StageTable table = describeStages(module, target.getName());
    plan.ofRanks = plannedRanks(table);
    if (std::optional<rank_layout> run = plannedRun(module)) {
      if (table.shared != sharing::none || !table.updatesInParts)
        run->shared = table.shared;
      plan.inRun = memory_of_ranks(table.needs, *run)[0];
    }
  }
  return plan;
}

/// A line for each number of ranks and of micro-batches, a column for each kind of sharing.
static void printRanks(ArrayRef<PlannedRank> ranks, llvm::raw_ostream &out) {
  auto areTogether = [&](const PlannedRank &row) {
    return row.ranks == ranks[0].ranks && row.microBatches == ranks[0].microBatches;
  };
  size_t kinds = llvm::count_if(ranks, areTogether);
  out << "\nbytes of a rank\nranks of a host  micro-batches";
  for (const PlannedRank &row : ranks.take_front(kinds))
    out << llvm::format("  %20s", ("--shard " + row.shard).c_str());
  for (auto [i, row] : llvm::enumerate(ranks)) {
    if (i % kinds == 0)
      out << llvm::format("\n%15d  %13lld", row.ranks, (long long)row.microBatches);
    out << llvm::format("  %20lld", (long long)row.bytes);
  }
  out << "\n";
}

std::string memoryPlanText(ModuleOp module) {
  MemoryTable plan = describeMemory(module);
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!plan.arenas.empty())
    out << "arena                    bytes     lower bound  ratio\n";
  for (const PlannedArena &arena : plan.arenas) {
    double ratio = arena.lowerBound > 0 ? double(arena.bytes) / double(arena.lowerBound) : 1;
    out << llvm::format("%-16s %13lld %15lld  %.3f\n", arena.name.c_str(), (long long)arena.bytes,
                        (long long)arena.lowerBound, ratio);
  }
  if (!plan.ofRanks.empty())
    printRanks(plan.ofRanks, out);
  if (plan.inRun)
    out << "\nbytes of a rank in the run that it is planned for: " << plan.inRun->bytes() << ", "
        << plan.inRun->accumulators << " of them sums over micro-batches\n";
  for (const PlannedEntry &entry : plan.entries) {
    out << "\n" << entry.name << ": " << entry.steps << " steps";
    if (entry.peak >= 0)
      out << ", most activation bytes alive at step " << entry.peak << " (marked *)";
    out << "\n  arena                   offset         bytes  first   last    tensor\n";
    for (const PlannedTensor &tensor : entry.tensors)
      out << llvm::format("  %-16s %13lld %13lld %6d %6d  %c ", tensor.arena.c_str(),
                          (long long)tensor.offset, (long long)tensor.bytes, tensor.first,
                          tensor.last, tensor.isAtPeak ? '*' : ' ')
          << tensor.name << "\n";
  }
  return text;
}

} // namespace trainc
