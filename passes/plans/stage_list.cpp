// SPDX-License-Identifier: Apache-2.0
//
// The stages of a step as a table and as text: what each computes and keeps, what goes from one to
// another, and the schedule as a grid. What trainc writes to plan/stages.txt and prints.
#include "dialects/elements/element_type.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "passes/planning/schedule_simulation.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/gradient_ranges.h"
#include "passes/sharding/update_parts.h"
#include "passes/stages/pipeline_plan.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

double timeOf(double flops, int64_t bytes) { return flops / flopsPerByte + double(bytes); }

/// The share of a function's time in steps from which nothing follows that other chunks read.
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

/// Adds what a function costs and the parameters that no chunk before has; its time.
double addFunction(PlannedChunk &chunk, func::FuncOp function, llvm::StringSet<> &counted) {
  double time = 0;
  SymbolTableCollection symbols;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    kernel::StepCost cost = step.cost(symbols);
    chunk.flops += cost.flops;
    chunk.bytes += cost.bytes();
    time += timeOf(cost.flops, cost.bytes());
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (train::roleAs<train::ParameterAttr>(function, i) &&
        counted.insert(train::nameOf(function, i)).second) {
      ++chunk.parameters;
      chunk.parameterBytes += bytesOf(function.getArgument(i).getType());
    }
  return time;
}

void addBuckets(PlannedChunk &chunk, func::FuncOp function) {
  SmallVector<double> behind; // time until a step has ended
  SymbolTableCollection symbols;
  double time = 0;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    kernel::StepCost cost = step.cost(symbols);
    behind.push_back(time += timeOf(cost.flops, cost.bytes()));
  }
  for (const GradientBucket &bucket : gradientBucketsOf(function)) {
    int64_t bytes = 0;
    for (unsigned gradient : bucket.gradients)
      bytes += bytesOf(function.getResultTypes()[gradient]);
    chunk.buckets.push_back(
        {function.getName().str(), bytes, time > 0 ? behind[size_t(bucket.step)] / time : 1});
  }
}

PlannedChunk chunkOf(ModuleOp module, int number, llvm::StringSet<> &counted) {
  PlannedChunk chunk;
  func::FuncOp forward = train::chunkFunction(module, train::ChunkPass::forward, number),
               backward = train::chunkFunction(module, train::ChunkPass::backward, number),
               weights = train::chunkFunction(module, train::ChunkPass::weight_gradient, number);
  chunk.forwardTime = addFunction(chunk, forward, counted);
  chunk.backwardTime = addFunction(chunk, backward, counted);
  chunk.forward = forward.getName().str();
  chunk.backward = backward.getName().str();
  chunk.weightGradientShare = shareNobodyWaitsFor(backward);
  chunk.gradientBytes = gradientBytesOf(backward);
  addBuckets(chunk, backward);
  if (weights) {
    double time = addFunction(chunk, weights, counted);
    chunk.backwardTime += time;
    chunk.weightGradientShare = chunk.backwardTime > 0 ? time / chunk.backwardTime : 0;
    chunk.weightGradient = weights.getName().str();
    chunk.gradientBytes += gradientBytesOf(weights);
    addBuckets(chunk, weights);
  }
  if (auto bytes = backward->getAttrOfType<DenseI64ArrayAttr>("kernel.chunk_bytes")) {
    chunk.activationBytes = bytes[0];
    chunk.slotBytes = bytes[1];
  }
  return chunk;
}

PlannedChunk onlyChunk(ModuleOp module) {
  PlannedChunk chunk;
  llvm::StringSet<> counted;
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  chunk.backwardTime = addFunction(chunk, function, counted);
  chunk.backward = function.getName().str();
  chunk.gradientBytes = gradientBytesOf(function);
  addBuckets(chunk, function);
  return chunk;
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

/// As the runtime lays them out (runtime/run/program_memory.h).
static void addMessages(StageTable &table) {
  const planning::Schedule &schedule = table.plan.schedule;
  const message_format &format = table.target == "cuda" ? cuda_messages : cpu_messages;
  std::vector<message_needs> messages;
  auto add = [&](int from, int to, int places, const std::vector<CrossingTensor> &tensors) {
    messages.push_back({schedule.pipeline.stageOf(from), schedule.pipeline.stageOf(to), places,
                        place_bytes(format, int64_t(tensors.size()),
                                    [&](int64_t i) { return bytesOf(tensors[size_t(i)].type); })});
  };
  for (auto [number, boundary] : llvm::enumerate(table.plan.boundaries)) {
    add(boundary.from, boundary.to, schedule.activationPlaces[number], boundary.activations);
    add(boundary.to, boundary.from, schedule.gradientPlaces[number], boundary.gradients);
  }
  add_messages(table.needs.stages, messages, format);
}

static void addNeeds(StageTable &table, ModuleOp module) {
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bytesOfArena = [&](kernel::Arena arena) { return arenas[int(arena)]; };
  table.needs.parameters = bytesOfArena(kernel::Arena::parameters);
  table.needs.gradients = bytesOfArena(kernel::Arena::gradients);
  table.needs.state = bytesOfArena(kernel::Arena::optimizer_state);
  table.needs.workspace = bytesOfArena(kernel::Arena::workspace);
  table.needs.constants = bytesOfArena(kernel::Arena::constants);
  if (auto frozen = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes"))
    table.needs.frozen = frozen.getInt();
  table.needs.every_rank_has_all = table.target == "cuda";
  table.updatesInParts = !updatesInParts(module).empty();
  table.needs.state_in_parts = table.target == "cuda" && table.updatesInParts;
  const bool isCut = bool(train::pipelineOf(module));
  table.shared = shardsGradients(module)          ? sharing::gradients
                 : isCut && table.target == "cpu" ? sharing::state
                                                  : sharing::none;
  const planning::Pipeline &pipeline = table.plan.schedule.pipeline;
  table.needs.stages.resize(pipeline.stages);
  for (auto [number, chunk] : llvm::enumerate(table.chunks)) {
    stage_needs &stage = table.needs.stages[pipeline.stageOf(int(number))];
    stage.gradients += chunk.gradientBytes;
    stage.activations = std::max(stage.activations, chunk.activationBytes); // one at a time
    stage.stash += chunk.slotBytes * table.plan.schedule.stashSlots[number];
  }
  if (isCut)
    addMessages(table);
}

StageTable describeStages(ModuleOp module, StringRef target) {
  StageTable table;
  table.target = target.str();
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  if (train::PipelineAttr pipeline = train::pipelineOf(module)) {
    table.plan = pipelinePlan(module);
    llvm::StringSet<> counted;
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk)
      table.chunks.push_back(chunkOf(module, chunk, counted));
    for (auto node : pipeline.getCuts().getAsRange<StringAttr>())
      table.cuts.push_back(node.str());
  } else {
    table.plan.schedule = scheduleOfOne();
    table.chunks.push_back(onlyChunk(module));
    table.chunks[0].activationBytes = arenas[int(kernel::Arena::activations)];
  }
  // States have the layout of gradients, slot after slot.
  int64_t gradients = 0;
  for (const PlannedChunk &chunk : table.chunks)
    gradients += chunk.gradientBytes;
  for (PlannedChunk &chunk : table.chunks)
    chunk.stateBytes = gradients == 0
                           ? 0
                           : int64_t(double(arenas[int(kernel::Arena::optimizer_state)]) *
                                     double(chunk.gradientBytes) / double(gradients));
  addNeeds(table, module);
  return table;
}

std::vector<rank_memory> StageTable::memoryOfRanks(int replicas) const {
  const planning::Pipeline &pipeline = plan.schedule.pipeline;
  return memory_of_ranks(needs,
                         {replicas, replicas * pipeline.stages, pipeline.microBatches, shared});
}

std::vector<PlannedRank> plannedRanks(const StageTable &table) {
  SmallVector<std::pair<StringRef, sharing>> kinds;
  if (table.shared == sharing::gradients)
    kinds = {{"gradients", sharing::gradients}};
  else
    kinds = {{"none", sharing::none}};
  if (table.shared == sharing::none && table.updatesInParts)
    kinds.push_back({"optimizer", sharing::state});
  std::vector<PlannedRank> rows;
  for (int ranks : {1, 2, 4, 8})
    for (int64_t microBatches : {1, 8})
      for (auto &[name, shared] : kinds)
        rows.push_back(
            {ranks, microBatches, name.str(),
             memory_of_ranks(table.needs, {ranks, ranks, microBatches, shared})[0].bytes()});
  return rows;
}

/// What a rank of each stage holds, and with more replicas on the host.
static void printMemory(const StageTable &table, llvm::raw_ostream &out) {
  out << "\nstage   parameters    gradients  accumulators        state  activations        stash   "
         "  messages    workspace    constants   bytes of a rank\n";
  for (auto [number, rank] : llvm::enumerate(table.memoryOfRanks(1)))
    out << llvm::format("%5d  %11lld  %11lld  %12lld  %11lld  %11lld  %11lld  %11lld", int(number),
                        (long long)rank.parameters, (long long)rank.gradients,
                        (long long)rank.accumulators, (long long)rank.state,
                        (long long)rank.activations, (long long)rank.stash,
                        (long long)rank.messages)
        << llvm::format("  %11lld  %11lld  %16lld\n", (long long)rank.workspace,
                        (long long)rank.constants, (long long)rank.bytes());
  constexpr int replicas[] = {1, 2, 4, 8};
  out << "\nreplicas on a host";
  for (int count : replicas)
    out << llvm::format("  %14d", count);
  out << "\n";
  for (size_t stage = 0; stage < table.needs.stages.size(); ++stage) {
    out << llvm::format("stage %-12d", int(stage));
    for (int count : replicas)
      out << llvm::format("  %14lld", (long long)table.memoryOfRanks(count)[stage].bytes());
    out << "\n";
  }
}

std::string stageListText(ModuleOp module, StringRef target) {
  train::PipelineAttr pipeline = train::pipelineOf(module);
  if (!pipeline)
    return "";
  StageTable table = describeStages(module, target);
  const planning::Schedule &schedule = table.plan.schedule;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << pipeline.getStages() << " stages, schedule " << pipeline.getSchedule().getValue() << ", "
      << pipeline.getMicroBatches() << " micro-batches a step and replica\n";
  bool isInterleaved = pipeline.getChunksPerStage() > 1;
  if (isInterleaved)
    out << pipeline.getChunksPerStage() << " chunks a stage: chunk c is on stage c modulo "
        << pipeline.getStages() << "\n";
  for (auto [chunk, node] : llvm::enumerate(table.cuts))
    out << "cut " << chunk << " | " << chunk + 1 << " behind " << node << "\n";
  out << (isInterleaved ? "\nchunk" : "\nstage")
      << "         flops  bytes moved   parameters        bytes  activations  bytes a slot  "
         "slots"
         "        stash  share of time    idle\n";
  planning::StepCosts step;
  double total = 0;
  for (const PlannedChunk &chunk : table.chunks) {
    total += chunk.forwardTime + chunk.backwardTime;
    planning::ChunkSeconds seconds;
    seconds.forward = chunk.forwardTime;
    seconds.weightGradient = chunk.backwardTime * chunk.weightGradientShare;
    seconds.inputGradient = chunk.backwardTime - seconds.weightGradient;
    step.chunks.push_back(seconds);
  }
  planning::StepTimes times = planning::simulateStep(schedule, 1, step);
  for (auto [number, chunk] : llvm::enumerate(table.chunks)) {
    int slots = schedule.stashSlots[number];
    out << llvm::format(
        "%5d  %12.0f  %11lld  %11lld  %11lld  %11lld  %12lld  %5d  %11lld  %13.3f  %4.1f %%\n",
        int(number), chunk.flops, (long long)chunk.bytes, (long long)chunk.parameters,
        (long long)chunk.parameterBytes, (long long)chunk.activationBytes,
        (long long)chunk.slotBytes, slots, (long long)(chunk.slotBytes * slots),
        (chunk.forwardTime + chunk.backwardTime) / total,
        100 * (1 - times.computing[schedule.pipeline.stageOf(int(number))] / times.seconds));
  }
  printMemory(table, out);
  out << (isInterleaved ? "\nchunks" : "\nstages") << "    pass             bytes  tensor\n";
  for (const ChunkBoundary &boundary : table.plan.boundaries) {
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
