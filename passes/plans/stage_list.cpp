// SPDX-License-Identifier: Apache-2.0
//
// The stages of a step: what each computes and keeps, what goes from one to another, and when.
#include "dialects/elements/element_type.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/plan_tables.h"
#include "passes/planning/stage_plan.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/gradient_ranges.h"
#include "passes/sharding/update_parts.h"
#include "passes/stages/pipeline_plan.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace trainc {
namespace {

double timeOf(const kernel::StepCost &cost) {
  return cost.flops / flopsPerByte + double(cost.bytes());
}

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
      double time = timeOf(step.cost(symbols));
      all += time;
      behind += isAwaited ? 0 : time;
    }
  }
  return all > 0 ? behind / all : 0;
}

/// Adds what a function costs and the parameters that no chunk before has; its time.
double addFunction(planned_chunk &chunk, func::FuncOp function, llvm::StringSet<> &counted) {
  double time = 0;
  SymbolTableCollection symbols;
  for (auto step : function.front().getOps<kernel::StepOpInterface>()) {
    kernel::StepCost cost = step.cost(symbols);
    chunk.flops += cost.flops;
    chunk.bytes += cost.bytes();
    time += timeOf(cost);
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (train::roleAs<train::ParameterAttr>(function, i) &&
        counted.insert(train::nameOf(function, i)).second) {
      ++chunk.parameters;
      chunk.parameter_bytes += bytesOf(function.getArgument(i).getType());
    }
  return time;
}

void addBuckets(planned_chunk &chunk, func::FuncOp function) {
  SmallVector<double> behind; // time until a step has ended
  SymbolTableCollection symbols;
  double time = 0;
  for (auto step : function.front().getOps<kernel::StepOpInterface>())
    behind.push_back(time += timeOf(step.cost(symbols)));
  for (const GradientBucket &bucket : gradientBucketsOf(function))
    chunk.buckets.push_back({function.getName().str(), bytesOfResults(function, bucket.gradients),
                             time > 0 ? behind[size_t(bucket.step)] / time : 1});
}

planned_chunk chunkOf(ModuleOp module, int number, llvm::StringSet<> &counted) {
  planned_chunk chunk;
  func::FuncOp forward = train::chunkFunction(module, train::ChunkPass::forward, number),
               backward = train::chunkFunction(module, train::ChunkPass::backward, number),
               weights = train::chunkFunction(module, train::ChunkPass::weight_gradient, number);
  chunk.forward_time = addFunction(chunk, forward, counted);
  chunk.backward_time = addFunction(chunk, backward, counted);
  chunk.forward = forward.getName().str();
  chunk.backward = backward.getName().str();
  chunk.weight_gradient_share = shareNobodyWaitsFor(backward);
  chunk.gradient_bytes = gradientBytesOf(backward);
  addBuckets(chunk, backward);
  if (weights) {
    double time = addFunction(chunk, weights, counted);
    chunk.backward_time += time;
    chunk.weight_gradient_share = chunk.backward_time > 0 ? time / chunk.backward_time : 0;
    chunk.weight_gradient = weights.getName().str();
    chunk.gradient_bytes += gradientBytesOf(weights);
    addBuckets(chunk, weights);
  }
  if (auto bytes = backward->getAttrOfType<DenseI64ArrayAttr>("kernel.chunk_bytes")) {
    chunk.activation_bytes = bytes[0];
    chunk.slot_bytes = bytes[1];
  }
  return chunk;
}

planned_chunk onlyChunk(ModuleOp module) {
  planned_chunk chunk;
  llvm::StringSet<> counted;
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  chunk.backward_time = addFunction(chunk, function, counted);
  chunk.backward = function.getName().str();
  chunk.gradient_bytes = gradientBytesOf(function);
  addBuckets(chunk, function);
  return chunk;
}

std::vector<crossing_bytes> crossing(ArrayRef<CrossingTensor> tensors) {
  std::vector<crossing_bytes> all;
  for (const CrossingTensor &tensor : tensors)
    all.push_back({tensor.name, bytesOf(tensor.type)});
  return all;
}

/// Those of the program, and what its ranks share.
void addProgram(planned_stages &stages, ModuleOp module) {
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bytesOfArena = [&](kernel::Arena arena) { return arenas[int(arena)]; };
  stages.arenas.parameters = bytesOfArena(kernel::Arena::parameters);
  stages.arenas.gradients = bytesOfArena(kernel::Arena::gradients);
  stages.arenas.state = bytesOfArena(kernel::Arena::optimizer_state);
  stages.arenas.workspace = bytesOfArena(kernel::Arena::workspace);
  stages.arenas.constants = bytesOfArena(kernel::Arena::constants);
  if (auto frozen = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes"))
    stages.arenas.frozen = frozen.getInt();
  stages.updates_in_parts = !updatesInParts(module).empty();
  const bool isCut = bool(train::pipelineOf(module));
  stages.shared = shardsGradients(module)           ? sharing::gradients
                  : isCut && stages.target == "cpu" ? sharing::state
                                                    : sharing::none;
}

} // namespace

planned_stages describeStages(ModuleOp module, StringRef target) {
  planned_stages stages;
  stages.target = target.str();
  addProgram(stages, module);
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  planning::Schedule schedule;
  if (train::PipelineAttr pipeline = train::pipelineOf(module)) {
    PipelinePlan plan = pipelinePlan(module);
    for (const ChunkBoundary &boundary : plan.boundaries)
      stages.boundaries.push_back({boundary.from, boundary.to, crossing(boundary.activations),
                                   crossing(boundary.gradients)});
    schedule = std::move(plan.schedule);
    llvm::StringSet<> counted;
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk)
      stages.chunks.push_back(chunkOf(module, chunk, counted));
    for (auto node : pipeline.getCuts().getAsRange<StringAttr>())
      stages.cuts.push_back(node.str());
  } else {
    schedule = planning::makeSchedule(planning::ScheduleKind::oneForwardOneBackward, {});
    stages.chunks.push_back(onlyChunk(module));
    stages.chunks[0].activation_bytes = arenas[int(kernel::Arena::activations)];
  }
  // States have the layout of gradients, slot after slot.
  int64_t gradients = 0;
  for (const planned_chunk &chunk : stages.chunks)
    gradients += chunk.gradient_bytes;
  for (planned_chunk &chunk : stages.chunks)
    chunk.state_bytes = gradients == 0 ? 0
                                       : int64_t(double(stages.arenas.state) *
                                                 double(chunk.gradient_bytes) / double(gradients));
  planning::addSchedule(stages, schedule);
  const std::vector<rank_memory> ranks = planning::memoryOfRanks(stages, schedule, 1);
  for (auto [number, stage] : llvm::enumerate(stages.stages))
    stage.memory = ranks[number];
  return stages;
}

std::vector<planned_rank> plannedRanks(const planned_stages &stages) {
  SmallVector<std::pair<StringRef, sharing>> kinds;
  if (stages.shared == sharing::gradients)
    kinds = {{"gradients", sharing::gradients}};
  else
    kinds = {{"none", sharing::none}};
  if (stages.shared == sharing::none && stages.updates_in_parts)
    kinds.push_back({"optimizer", sharing::state});
  const memory_needs needs = planning::needsOfOne(stages);
  std::vector<planned_rank> rows;
  for (int ranks : {1, 2, 4, 8})
    for (int64_t microBatches : {1, 8})
      for (auto &[name, shared] : kinds)
        rows.push_back({ranks, microBatches, name.str(),
                        memory_of_ranks(needs, {ranks, ranks, microBatches, shared})[0].bytes()});
  return rows;
}

} // namespace trainc
