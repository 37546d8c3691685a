// SPDX-License-Identifier: Apache-2.0
#include "passes/planning/stage_plan.h"
#include "passes/planning/schedule_proof.h"

#include <algorithm>

namespace trainc::planning {

namespace {

constexpr ActionKind kKinds[] = {
    ActionKind::forward,        ActionKind::backward,        ActionKind::inputGradient,
    ActionKind::weightGradient, ActionKind::sendActivation,  ActionKind::receiveActivation,
    ActionKind::sendGradient,   ActionKind::receiveGradient, ActionKind::reduce,
    ActionKind::norm,           ActionKind::update};

constexpr int kMost = 1 << 20; // stages, micro-batches, places

/// Checks every number before it is an index.
class ScheduleReader {
public:
  ScheduleReader(const planned_stages &plan, std::string &fault) : plan(plan), fault(fault) {}

  Schedule run() {
    Schedule schedule;
    const std::optional<ScheduleKind> kind = scheduleKind(plan.schedule);
    expect(kind.has_value(), "'" + plan.schedule + "' is unknown");
    if (!hasShape())
      return schedule;
    schedule.kind = *kind;
    Pipeline &pipeline = schedule.pipeline;
    pipeline.stages = int(plan.stages.size());
    pipeline.chunksPerStage = plan.chunks_per_stage;
    pipeline.microBatches = plan.micro_batches;
    for (const planned_chunk &chunk : plan.chunks) {
      checkBuckets(chunk);
      schedule.stashSlots.push_back(chunk.slots);
    }
    for (const planned_boundary &boundary : plan.boundaries) {
      pipeline.boundaries.push_back({boundary.from, boundary.to});
      schedule.activationPlaces.push_back(boundary.activation_places);
      schedule.gradientPlaces.push_back(boundary.gradient_places);
    }
    for (const planned_stage &stage : plan.stages) {
      schedule.actions.emplace_back();
      for (const planned_action &action : stage.actions)
        schedule.actions.back().push_back(actionOf(action));
    }
    if (fault.empty())
      for (const std::string &found : faultsOf(schedule, 1))
        fault = "the schedule cannot run: " + found;
    return schedule;
  }

private:
  void expect(bool isTrue, const std::string &otherwise) {
    if (!isTrue && fault.empty())
      fault = otherwise;
  }

  void checkCount(int count, const char *what) {
    expect(count >= 1 && count < kMost, "has " + std::to_string(count) + " " + what);
  }

  bool hasShape() {
    checkCount(plan.micro_batches, "micro-batches");
    checkCount(plan.chunks_per_stage, "chunks per stage");
    expect(!plan.stages.empty() &&
               plan.chunks.size() == plan.stages.size() * size_t(plan.chunks_per_stage),
           "has " + std::to_string(plan.chunks.size()) + " chunks for " +
               std::to_string(plan.stages.size()) + " stages");
    for (const planned_chunk &chunk : plan.chunks)
      checkCount(chunk.slots, "slots of a chunk");
    for (const planned_boundary &boundary : plan.boundaries) {
      checkCount(boundary.activation_places, "places at a boundary");
      checkCount(boundary.gradient_places, "places at a boundary");
      expect(boundary.from < boundary.to, "a boundary leads back");
      expect(size_t(boundary.to) < plan.chunks.size(), "a boundary leads to no chunk");
    }
    return fault.empty();
  }

  /// Those of the weight gradient's function come after the others.
  void checkBuckets(const planned_chunk &chunk) {
    const planned_bucket *before = nullptr;
    for (const planned_bucket &bucket : chunk.buckets) {
      const bool isFirst = !before || before->function != bucket.function;
      const bool isOfWeights = bucket.function == chunk.weight_gradient;
      expect(isOfWeights || (bucket.function == chunk.backward && (!isFirst || !before)),
             "a bucket of '" + bucket.function + "' is out of order");
      expect(bucket.behind <= 1 && (isFirst || bucket.behind >= before->behind),
             "the buckets of '" + bucket.function + "' are out of order");
      before = &bucket;
    }
  }

  Action actionOf(const planned_action &planned) {
    Action action{ActionKind::norm};
    const auto *kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](ActionKind each) { return nameOf(each) == planned.kind; });
    expect(kind != std::end(kKinds), "'" + planned.kind + "' is unknown");
    if (kind == std::end(kKinds))
      return action;
    action.kind = *kind;
    auto number = [&](int value, size_t end, const char *what) {
      expect(value < int(end), "an action '" + planned.kind + "' is of " + what + " " +
                                   std::to_string(value) + ", of " + std::to_string(end));
      return value;
    };
    action.chunk = number(planned.chunk, plan.chunks.size(), "chunk");
    action.microBatch = number(planned.micro_batch, size_t(plan.micro_batches), "micro-batch");
    action.boundary = number(planned.boundary, plan.boundaries.size(), "boundary");
    action.peer = number(planned.peer, plan.stages.size(), "stage");
    action.slot = number(planned.slot, kMost, "slot");
    const bool isMessage = isSend(action.kind) || isReceive(action.kind);
    const bool isOfChunk = action.kind != ActionKind::norm && action.kind != ActionKind::update;
    const bool isOfMicroBatch = isMessage || isCompute(action.kind);
    expect((!isOfChunk || action.chunk >= 0) &&
               (!isOfMicroBatch || (action.microBatch >= 0 && action.slot >= 0)) &&
               (!isMessage || (action.boundary >= 0 && action.peer >= 0)),
           "an action '" + planned.kind + "' says too little");
    return action;
  }

  const planned_stages &plan;
  std::string &fault;
};

} // namespace

Schedule scheduleOf(const planned_stages &stages, std::string &fault) {
  return ScheduleReader(stages, fault).run();
}

void addSchedule(planned_stages &stages, const Schedule &schedule) {
  stages.schedule = nameOf(schedule.kind);
  stages.micro_batches = schedule.pipeline.microBatches;
  stages.chunks_per_stage = schedule.pipeline.chunksPerStage;
  for (size_t i = 0; i < stages.chunks.size(); ++i)
    stages.chunks[i].slots = schedule.stashSlots[i];
  for (size_t i = 0; i < stages.boundaries.size(); ++i) {
    stages.boundaries[i].activation_places = schedule.activationPlaces[i];
    stages.boundaries[i].gradient_places = schedule.gradientPlaces[i];
  }
  stages.stages.resize(schedule.actions.size());
  for (size_t stage = 0; stage < stages.stages.size(); ++stage)
    for (const Action &action : schedule.actions[stage])
      stages.stages[stage].actions.push_back({nameOf(action.kind), action.chunk, action.microBatch,
                                              action.boundary, action.peer, action.slot});
}

memory_needs needsOf(const planned_stages &stages, const Schedule &schedule) {
  const Pipeline &pipeline = schedule.pipeline;
  const message_format &format = stages.target == "cuda" ? cuda_messages : cpu_messages;
  memory_needs needs = stages.arenas;
  needs.every_rank_has_all = stages.target == "cuda";
  needs.state_in_parts = needs.every_rank_has_all && stages.updates_in_parts;
  needs.stages.resize(size_t(pipeline.stages));
  for (size_t i = 0; i < stages.chunks.size(); ++i) {
    const planned_chunk &chunk = stages.chunks[i];
    stage_needs &stage = needs.stages[size_t(pipeline.stageOf(int(i)))];
    stage.gradients += chunk.gradient_bytes;
    stage.activations = std::max(stage.activations, chunk.activation_bytes); // one at a time
    stage.stash += chunk.slot_bytes * schedule.stashSlots[i];
  }
  std::vector<message_needs> messages;
  auto add = [&](int from, int to, int places, const std::vector<crossing_bytes> &tensors) {
    messages.push_back(
        {pipeline.stageOf(from), pipeline.stageOf(to), places,
         place_bytes(format, tensors.size(), [&](size_t i) { return tensors[i].bytes; })});
  };
  for (size_t i = 0; i < stages.boundaries.size(); ++i) {
    const planned_boundary &boundary = stages.boundaries[i];
    add(boundary.from, boundary.to, schedule.activationPlaces[i], boundary.activations);
    add(boundary.to, boundary.from, schedule.gradientPlaces[i], boundary.gradients);
  }
  if (stages.is_cut())
    add_messages(needs.stages, messages, format);
  return needs;
}

memory_needs needsOfOne(const planned_stages &stages) {
  return needsOf(stages, makeSchedule(ScheduleKind::oneForwardOneBackward, {}));
}

std::vector<rank_memory> memoryOfRanks(const planned_stages &stages, const Schedule &schedule,
                                       int replicas) {
  return memory_of_ranks(needsOf(stages, schedule),
                         {replicas, replicas * schedule.pipeline.stages,
                          schedule.pipeline.microBatches, stages.shared});
}

StepTimes predictedTimes(const planned_stages &stages, const Schedule &schedule) {
  StepCosts costs;
  for (const planned_chunk &chunk : stages.chunks) {
    ChunkSeconds seconds;
    seconds.forward = chunk.forward_time;
    seconds.weightGradient = chunk.backward_time * chunk.weight_gradient_share;
    seconds.inputGradient = chunk.backward_time - seconds.weightGradient;
    costs.chunks.push_back(seconds);
  }
  return simulateStep(schedule, 1, costs);
}

} // namespace trainc::planning
