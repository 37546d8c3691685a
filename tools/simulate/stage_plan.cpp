// SPDX-License-Identifier: Apache-2.0
//
// The files may be damaged or written by hand: every number is checked before it is an index, and
// the schedule is proved as trainc has proved it.
#include "tools/simulate/stage_plan.h"
#include "passes/planning/schedule_proof.h"
#include "runtime/failure.h"
#include "tools/simulate/plan_fields.h"

#include <array>
#include <optional>

namespace trainc::simulate {

using nlohmann::json;
using planning::Action;
using planning::ActionKind;

namespace {

constexpr int64_t most = 1 << 20; // stages, micro-batches, places

template <typename Kind, size_t count>
Kind kindCalled(const std::array<Kind, count> &kinds, const std::string &name,
                const std::string &path) {
  for (Kind kind : kinds)
    if (planning::nameOf(kind) == name)
      return kind;
  refusePlan(path, "'" + name + "' is unknown");
}

constexpr std::array scheduleKinds = {
    planning::ScheduleKind::gpipe, planning::ScheduleKind::oneForwardOneBackward,
    planning::ScheduleKind::interleaved, planning::ScheduleKind::zeroBubble};
constexpr std::array actionKinds = {
    ActionKind::forward,        ActionKind::backward,        ActionKind::inputGradient,
    ActionKind::weightGradient, ActionKind::sendActivation,  ActionKind::receiveActivation,
    ActionKind::sendGradient,   ActionKind::receiveGradient, ActionKind::reduce,
    ActionKind::norm,           ActionKind::update};

class PlanReader {
public:
  explicit PlanReader(StagePlan &plan) : plan(plan), path(plan.folder + "/plan/stages.json") {}

  void run() {
    const json document = readDocument(path);
    Fields fields(path, "the plan", document);
    planning::Schedule &schedule = plan.schedule;
    planning::Pipeline &pipeline = schedule.pipeline;
    schedule.kind = kindCalled(scheduleKinds, fields.text("schedule"), path);
    const json &stages = fields.list("stages"), &chunks = fields.list("chunks");
    pipeline.microBatches = int(fields.integer("micro_batches", 1, most));
    pipeline.chunksPerStage = int(fields.integer("chunks_per_stage", 1, most));
    pipeline.stages = int(stages.size());
    addProgram(fields);
    if (stages.empty() || chunks.size() != stages.size() * size_t(pipeline.chunksPerStage))
      refusePlan(path, "has " + std::to_string(chunks.size()) + " chunks for " +
                           std::to_string(stages.size()) + " stages");
    for (const json &chunk : chunks)
      addChunk(chunk);
    for (const json &boundary : fields.list("boundaries"))
      addBoundary(boundary);
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      schedule.actions.emplace_back();
      Fields of(path, "stage " + std::to_string(stage), stages[stage]);
      for (const json &action : of.list("actions"))
        schedule.actions.back().push_back(actionOf(action));
    }
    for (const std::string &fault : planning::faultsOf(schedule, 1))
      refusePlan(path, "the schedule cannot run: " + fault);
  }

private:
  void addProgram(const Fields &fields) {
    plan.target = fields.text("target");
    const std::string shared = fields.text("shared");
    if (shared == "gradients")
      plan.shared = sharing::gradients;
    else if (shared == "state")
      plan.shared = sharing::state;
    else if (shared != "none")
      refusePlan(path, "'" + shared + "' is unknown");
    plan.updatesInParts = fields.flag("updates_in_parts");
    Fields arenas(path, "'arenas'", fields.at("arenas"));
    plan.arenas.parameters = arenas.bytes("parameters");
    plan.arenas.gradients = arenas.bytes("gradients");
    plan.arenas.state = arenas.bytes("optimizer_state");
    plan.arenas.workspace = arenas.bytes("workspace");
    plan.arenas.constants = arenas.bytes("constants");
    plan.arenas.frozen = arenas.bytes("frozen");
    plan.arenas.every_rank_has_all = plan.target == "cuda";
    plan.arenas.state_in_parts = plan.arenas.every_rank_has_all && plan.updatesInParts;
  }

  void addBuckets(ChunkPlan &chunk, const Fields &fields) {
    for (const json &object : fields.list("buckets")) {
      Fields bucket(path, "a bucket", object);
      const std::string function = bucket.text("function");
      PlanBucket found{!chunk.weightGradient.empty() && function == chunk.weightGradient,
                       bucket.amount("bytes"), bucket.amount("behind")};
      const bool isFirst =
          chunk.buckets.empty() || chunk.buckets.back().ofWeightGradient != found.ofWeightGradient;
      if (!found.ofWeightGradient &&
          (function != chunk.backward || (isFirst && !chunk.buckets.empty())))
        refusePlan(path, "a bucket of '" + function + "' is out of order");
      if (found.behind > 1 || (!isFirst && found.behind < chunk.buckets.back().behind))
        refusePlan(path, "the buckets of '" + function + "' are out of order");
      chunk.buckets.push_back(found);
    }
  }

  void addChunk(const json &object) {
    Fields fields(path, "chunk " + std::to_string(plan.chunks.size()), object);
    ChunkPlan chunk;
    chunk.backward = fields.text("backward");
    if (fields.has("forward"))
      chunk.forward = fields.text("forward");
    if (fields.has("weight_gradient"))
      chunk.weightGradient = fields.text("weight_gradient");
    chunk.forwardTime = fields.amount("forward_time");
    chunk.backwardTime = fields.amount("backward_time");
    chunk.weightGradientShare = std::min(1.0, fields.amount("weight_gradient_share"));
    chunk.gradientBytes = fields.bytes("gradient_bytes");
    chunk.activationBytes = fields.bytes("activation_bytes");
    chunk.slotBytes = fields.bytes("slot_bytes");
    addBuckets(chunk, fields);
    plan.schedule.stashSlots.push_back(int(fields.integer("slots", 1, most)));
    plan.chunks.push_back(std::move(chunk));
  }

  /// Of a message, and of a place for it.
  std::pair<double, int64_t> bytesOf(const json &tensors) const {
    double bytes = 0;
    std::vector<int64_t> each;
    for (const json &tensor : tensors) {
      each.push_back(Fields(path, "a tensor", tensor).bytes("bytes"));
      bytes += double(each.back());
    }
    const message_format &format = plan.target == "cuda" ? cuda_messages : cpu_messages;
    return {bytes,
            place_bytes(format, int64_t(each.size()), [&](int64_t i) { return each[size_t(i)]; })};
  }

  void addBoundary(const json &object) {
    Fields fields(path, "boundary " + std::to_string(plan.boundaries.size()), object);
    const auto chunks = int64_t(plan.chunks.size());
    int from = int(fields.integer("from", 0, chunks)), to = int(fields.integer("to", 0, chunks));
    if (from >= to)
      refusePlan(path, "a boundary leads back");
    plan.schedule.pipeline.boundaries.push_back({from, to});
    plan.schedule.activationPlaces.push_back(int(fields.integer("activation_places", 1, most)));
    plan.schedule.gradientPlaces.push_back(int(fields.integer("gradient_places", 1, most)));
    auto [activations, activationPlace] = bytesOf(fields.list("activations"));
    auto [gradients, gradientPlace] = bytesOf(fields.list("gradients"));
    plan.boundaries.push_back({activations, gradients, activationPlace, gradientPlace});
  }

  Action actionOf(const json &object) const {
    Fields fields(path, "an action", object);
    Action action{kindCalled(actionKinds, fields.text("action"), path)};
    const planning::Pipeline &pipeline = plan.schedule.pipeline;
    const bool isMessage = planning::isSend(action.kind) || planning::isReceive(action.kind);
    action.chunk = fields.index("chunk", plan.chunks.size());
    action.microBatch = fields.index("micro_batch", size_t(pipeline.microBatches));
    action.boundary = fields.index("boundary", plan.boundaries.size());
    action.peer = fields.index("peer", size_t(pipeline.stages));
    action.slot = fields.index(isMessage ? "place" : "slot", most);
    const bool isOfChunk = action.kind != ActionKind::norm && action.kind != ActionKind::update;
    const bool isOfMicroBatch = isMessage || planning::isCompute(action.kind);
    if ((isOfChunk && action.chunk < 0) ||
        (isOfMicroBatch && (action.microBatch < 0 || action.slot < 0)) ||
        (isMessage && (action.boundary < 0 || action.peer < 0)))
      refusePlan(path,
                 "an action '" + std::string(planning::nameOf(action.kind)) + "' says too little");
    return action;
  }

  StagePlan &plan;
  const std::string path;
};

void readKernels(StagePlan &plan) {
  const std::string path = plan.folder + "/plan/kernels.json";
  const json document = readDocument(path);
  for (const json &object : Fields(path, "the plan", document).list("entries")) {
    Fields fields(path, "an entry", object);
    EntryPlan &entry = plan.entries[fields.text("entry")];
    entry.steps = int(fields.integer("steps", 0, INT32_MAX));
    for (const json &kernel : fields.list("kernels")) {
      Fields cost(path, "a kernel", kernel);
      entry.kernels.push_back({cost.amount("flops_each"), cost.amount("bytes_each"),
                               int(cost.integer("times", 0, INT32_MAX))});
    }
  }
  for (const ChunkPlan &chunk : plan.chunks)
    for (const std::string &entry :
         {chunk.forward, chunk.backward, chunk.weightGradient, std::string("update")})
      if (!entry.empty() && !plan.entries.count(entry))
        refusePlan(path, "has no entry function '" + entry + "', which stages.json names");
}

} // namespace

StagePlan readStagePlan(const std::string &folder) {
  StagePlan plan;
  plan.folder = folder;
  PlanReader(plan).run();
  readKernels(plan);
  return plan;
}

memory_needs needsOf(const StagePlan &plan, const planning::Schedule &schedule) {
  const planning::Pipeline &pipeline = schedule.pipeline;
  memory_needs needs = plan.arenas;
  needs.stages.resize(size_t(pipeline.stages));
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const ChunkPlan &chunk = plan.chunks[i];
    stage_needs &stage = needs.stages[size_t(pipeline.stageOf(int(i)))];
    stage.gradients += chunk.gradientBytes;
    stage.activations = std::max(stage.activations, chunk.activationBytes); // one at a time
    stage.stash += chunk.slotBytes * schedule.stashSlots[i];
  }
  std::vector<message_needs> messages;
  for (size_t i = 0; i < plan.boundaries.size(); ++i) {
    const int from = pipeline.stageOf(pipeline.boundaries[i].from),
              to = pipeline.stageOf(pipeline.boundaries[i].to);
    messages.push_back(
        {from, to, schedule.activationPlaces[i], plan.boundaries[i].activationPlace});
    messages.push_back({to, from, schedule.gradientPlaces[i], plan.boundaries[i].gradientPlace});
  }
  if (plan.isCut())
    add_messages(needs.stages, messages, plan.target == "cuda" ? cuda_messages : cpu_messages);
  return needs;
}

planning::Schedule scheduleFor(const StagePlan &plan, int stages, planning::ScheduleKind kind,
                               int microBatches) {
  const int chunks = int(plan.chunks.size());
  if (chunks % stages != 0)
    throw failure(exit_usage, "option --stages: " + plan.folder + " is cut into " +
                                  std::to_string(chunks) + ", which " + std::to_string(stages) +
                                  " stages cannot share\n  try: trainc --stages " +
                                  std::to_string(stages));
  planning::Pipeline pipeline = plan.schedule.pipeline;
  pipeline.stages = stages;
  pipeline.chunksPerStage = chunks / stages;
  pipeline.microBatches = microBatches;
  if (std::string why = planning::unfit(kind, pipeline); !why.empty())
    throw failure(exit_usage, "option --schedule: " + why + "\n  try: --stages " +
                                  std::to_string(chunks) +
                                  ", another --schedule or --micro-batches");
  planning::Schedule schedule = planning::makeSchedule(kind, pipeline);
  for (const std::string &fault : planning::faultsOf(schedule, 1))
    throw failure(exit_internal, "internal error: the schedule cannot run: " + fault);
  return schedule;
}

} // namespace trainc::simulate
