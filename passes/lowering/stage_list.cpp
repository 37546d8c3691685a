// SPDX-License-Identifier: Apache-2.0
//
// The stages of a step as text: what each computes and keeps, what goes from one to another, and
// the schedule as a grid. What trainc writes to plan/stages.txt and prints.
#include "dialects/elements/element_type.h"
#include "passes/lowering/fusion_roots.h"
#include "passes/lowering/pipeline_plan.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "passes/planning/schedule_simulation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

struct StageCost {
  double flops = 0, time[2] = {}; // forward and backward; time as bytes of traffic
  int64_t bytes = 0, parameters = 0, parameterBytes = 0, activations = 0, slot = 0;
};

StageCost costOf(ModuleOp module, int stage, const llvm::StringMap<ListedEntry> &entries,
                 llvm::StringSet<> &counted) {
  StageCost cost;
  for (train::Direction direction : {train::Direction::forward, train::Direction::backward}) {
    func::FuncOp function = train::stageFunction(module, direction, stage);
    const ListedEntry &entry = entries.at(function.getName());
    cost.flops += entry.flops;
    cost.bytes += entry.bytes;
    cost.time[int(direction)] = entry.flops / flopsPerByte + double(entry.bytes);
    if (auto bytes = function->getAttrOfType<DenseI64ArrayAttr>("kernel.stage_bytes")) {
      cost.activations = bytes[0];
      cost.slot = bytes[1];
    }
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleAs<train::ParameterAttr>(function, i) &&
          counted.insert(train::nameOf(function, i)).second) {
        ++cost.parameters;
        cost.parameterBytes += bytesOf(function.getArgument(i).getType());
      }
  }
  return cost;
}

void listTensors(const char *direction, int from, int to,
                 const std::vector<CrossingTensor> &tensors, llvm::raw_ostream &out) {
  for (const CrossingTensor &tensor : tensors)
    out << llvm::format("%2d -> %-2d  %-8s  %12lld  ", from, to, direction,
                        (long long)bytesOf(tensor.type))
        << tensor.name << "\n";
}

} // namespace

std::string stageListText(ModuleOp module) {
  train::PipelineAttr pipeline = train::pipelineOf(module);
  if (!pipeline)
    return "";
  PipelinePlan plan = pipelinePlan(module);
  llvm::StringMap<ListedEntry> entries;
  for (ListedEntry &entry : describeKernels(module))
    entries[entry.name] = entry;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << pipeline.getStages() << " stages, schedule " << pipeline.getSchedule().getValue() << ", "
      << pipeline.getMicroBatches() << " micro-batches a step and replica\n";
  for (auto [stage, node] : llvm::enumerate(pipeline.getCuts().getAsRange<StringAttr>()))
    out << "cut " << stage << " | " << stage + 1 << " behind " << node.getValue() << "\n";
  out << "\nstage         flops  bytes moved   parameters        bytes  activations  bytes a slot  "
         "slots"
         "        stash  share of time\n";
  std::vector<StageCost> costs;
  llvm::StringSet<> counted; // a parameter that several stages use is the first one's
  planning::StepCosts step;
  double total = 0;
  for (int stage = 0; stage < pipeline.getStages(); ++stage) {
    costs.push_back(costOf(module, stage, entries, counted));
    total += costs.back().time[0] + costs.back().time[1];
    planning::ChunkSeconds chunk;
    chunk.forward = costs.back().time[0];
    chunk.inputGradient = costs.back().time[1];
    step.chunks.push_back(chunk);
  }
  for (auto [stage, cost] : llvm::enumerate(costs)) {
    int slots = plan.schedule.stashSlots[stage];
    out << llvm::format(
        "%5d  %12.0f  %11lld  %11lld  %11lld  %11lld  %12lld  %5d  %11lld  %13.3f\n", int(stage),
        cost.flops, (long long)cost.bytes, (long long)cost.parameters,
        (long long)cost.parameterBytes, (long long)cost.activations, (long long)cost.slot, slots,
        (long long)(cost.slot * slots), (cost.time[0] + cost.time[1]) / total);
  }
  out << "\nstages    pass             bytes  tensor\n";
  for (const StageBoundary &boundary : plan.boundaries) {
    listTensors("forward", boundary.from, boundary.to, boundary.activations, out);
    listTensors("backward", boundary.to, boundary.from, boundary.gradients, out);
  }
  planning::StepTimes times = planning::simulateStep(plan.schedule, 1, step);
  out << llvm::format("\nidle, if messages and the update took no time: %.1f %%\n",
                      100 * times.bubble);
  constexpr double columns = 32; // each three characters wide
  out << planning::gridOf(plan.schedule, times, times.seconds / columns);
  return text;
}

} // namespace trainc
