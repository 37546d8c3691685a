// SPDX-License-Identifier: Apache-2.0
//
// The stages of a step as a table and as text: what each computes and keeps, what goes from one to
// another, and the schedule as a grid. What trainc writes to plan/stages.txt and prints.
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

double timeOf(double flops, int64_t bytes) { return flops / flopsPerByte + double(bytes); }

/// Of a function's time, that of the steps from which nothing follows that other stages read.
double shareNobodyWaitsFor(func::FuncOp function) {
  SymbolTableCollection symbols;
  Operation *end = function.front().getTerminator();
  DenseSet<Operation *> awaited;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (train::resultRoleAs<train::PassedAttr>(function, i))
      if (Operation *maker = end->getOperand(i).getDefiningOp())
        awaited.insert(maker);
  double all = 0, behind = 0;
  for (Operation &op : llvm::reverse(function.front())) {
    bool isAwaited = awaited.contains(&op);
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && isAwaited)
        awaited.insert(maker);
    if (auto step = dyn_cast<kernel::StepOpInterface>(op)) {
      kernel::StepCost cost = step.cost(symbols);
      double time = timeOf(cost.flops, cost.bytes());
      all += time;
      behind += isAwaited ? 0 : time;
    }
  }
  return all > 0 ? behind / all : 0;
}

int64_t gradientBytesOf(func::FuncOp function) {
  int64_t bytes = 0;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(train::resultRoleOf(function, i)))
      bytes += bytesOf(function.getResultTypes()[i]);
  return bytes;
}

/// Adds what a function costs and the parameters that no stage before has.
void addFunction(PlannedStage &stage, func::FuncOp function, double &time,
                 llvm::StringSet<> &counted) {
  SymbolTableCollection symbols;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    kernel::StepCost cost = step.cost(symbols);
    stage.flops += cost.flops;
    stage.bytes += cost.bytes();
    time += timeOf(cost.flops, cost.bytes());
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (train::roleAs<train::ParameterAttr>(function, i) &&
        counted.insert(train::nameOf(function, i)).second) {
      ++stage.parameters;
      stage.parameterBytes += bytesOf(function.getArgument(i).getType());
    }
}

PlannedStage stageOf(ModuleOp module, int number, llvm::StringSet<> &counted) {
  PlannedStage stage;
  func::FuncOp forward = train::stageFunction(module, train::Direction::forward, number),
               backward = train::stageFunction(module, train::Direction::backward, number);
  addFunction(stage, forward, stage.forwardTime, counted);
  addFunction(stage, backward, stage.backwardTime, counted);
  stage.forward = forward.getName().str();
  stage.backward = backward.getName().str();
  stage.weightGradientShare = shareNobodyWaitsFor(backward);
  stage.gradientBytes = gradientBytesOf(backward);
  if (auto bytes = backward->getAttrOfType<DenseI64ArrayAttr>("kernel.stage_bytes")) {
    stage.activationBytes = bytes[0];
    stage.slotBytes = bytes[1];
  }
  return stage;
}

PlannedStage onlyStage(ModuleOp module) {
  PlannedStage stage;
  llvm::StringSet<> counted;
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  addFunction(stage, function, stage.backwardTime, counted);
  stage.backward = function.getName().str();
  stage.gradientBytes = gradientBytesOf(function);
  return stage;
}

planning::Schedule scheduleOfOne() {
  planning::Pipeline pipeline;
  return planning::makeSchedule(planning::ScheduleKind::oneForwardOneBackward, pipeline);
}

void listTensors(const char *direction, int from, int to,
                 const std::vector<CrossingTensor> &tensors, llvm::raw_ostream &out) {
  for (const CrossingTensor &tensor : tensors)
    out << llvm::format("%2d -> %-2d  %-8s  %12lld  ", from, to, direction,
                        (long long)bytesOf(tensor.type))
        << tensor.name << "\n";
}

} // namespace

StageTable describeStages(ModuleOp module) {
  StageTable table;
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bytesOfArena = [&](kernel::Arena arena) { return arenas[int(arena)]; };
  if (train::PipelineAttr pipeline = train::pipelineOf(module)) {
    table.plan = pipelinePlan(module);
    llvm::StringSet<> counted;
    for (int stage = 0; stage < pipeline.getStages(); ++stage)
      table.stages.push_back(stageOf(module, stage, counted));
    for (auto node : pipeline.getCuts().getAsRange<StringAttr>())
      table.cuts.push_back(node.str());
  } else {
    table.plan.schedule = scheduleOfOne();
    table.stages.push_back(onlyStage(module));
    table.stages[0].activationBytes = bytesOfArena(kernel::Arena::activations);
  }
  // States have the layout of gradients, slot after slot.
  int64_t gradients = 0;
  for (const PlannedStage &stage : table.stages)
    gradients += stage.gradientBytes;
  for (PlannedStage &stage : table.stages)
    stage.stateBytes = gradients == 0
                           ? 0
                           : int64_t(double(bytesOfArena(kernel::Arena::optimizer_state)) *
                                     double(stage.gradientBytes) / double(gradients));
  table.workspaceBytes = bytesOfArena(kernel::Arena::workspace);
  return table;
}

std::string stageListText(ModuleOp module) {
  train::PipelineAttr pipeline = train::pipelineOf(module);
  if (!pipeline)
    return "";
  StageTable table = describeStages(module);
  const planning::Schedule &schedule = table.plan.schedule;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << pipeline.getStages() << " stages, schedule " << pipeline.getSchedule().getValue() << ", "
      << pipeline.getMicroBatches() << " micro-batches a step and replica\n";
  for (auto [stage, node] : llvm::enumerate(table.cuts))
    out << "cut " << stage << " | " << stage + 1 << " behind " << node << "\n";
  out << "\nstage         flops  bytes moved   parameters        bytes  activations  bytes a slot  "
         "slots"
         "        stash  share of time    idle\n";
  planning::StepCosts step;
  double total = 0;
  for (const PlannedStage &stage : table.stages) {
    total += stage.forwardTime + stage.backwardTime;
    planning::ChunkSeconds chunk;
    chunk.forward = stage.forwardTime;
    chunk.inputGradient = stage.backwardTime;
    step.chunks.push_back(chunk);
  }
  planning::StepTimes times = planning::simulateStep(schedule, 1, step);
  for (auto [number, stage] : llvm::enumerate(table.stages)) {
    int slots = schedule.stashSlots[number];
    out << llvm::format(
        "%5d  %12.0f  %11lld  %11lld  %11lld  %11lld  %12lld  %5d  %11lld  %13.3f  %4.1f %%\n",
        int(number), stage.flops, (long long)stage.bytes, (long long)stage.parameters,
        (long long)stage.parameterBytes, (long long)stage.activationBytes,
        (long long)stage.slotBytes, slots, (long long)(stage.slotBytes * slots),
        (stage.forwardTime + stage.backwardTime) / total,
        100 * (1 - times.computing[number] / times.seconds));
  }
  out << "\nstages    pass             bytes  tensor\n";
  for (const StageBoundary &boundary : table.plan.boundaries) {
    listTensors("forward", boundary.from, boundary.to, boundary.activations, out);
    listTensors("backward", boundary.to, boundary.from, boundary.gradients, out);
  }
  out << llvm::format("\nidle, if messages and the update took no time: %.1f %%\n",
                      100 * times.bubble);
  constexpr double columns = 32; // each three characters wide
  out << planning::gridOf(schedule, times, times.seconds / columns);
  return text;
}

} // namespace trainc
