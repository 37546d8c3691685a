// SPDX-License-Identifier: Apache-2.0
//
// The files may be damaged or written by hand: every number is checked before it is an index, and
// the schedule is proved as trainc has proved it.
#include "tools/simulate/stage_plan.h"
#include "passes/planning/schedule_proof.h"
#include "runtime/bounded_json.h"
#include "runtime/failure.h"

#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

namespace trainc::simulate {

using nlohmann::json;
using planning::Action;
using planning::ActionKind;

namespace {

constexpr int deepest = 8;        // steps of a profile: 7
constexpr int64_t most = 1 << 20; // stages, micro-batches, places
constexpr int64_t mostBytes = int64_t(1) << 52;

[[noreturn]] void refuse(const std::string &path, const std::string &what) {
  throw failure(exit_data, path + ": " + what + "\n  try: trainc again, into the same folder");
}

/// The fields of an object of a file, by names that messages have.
class Fields {
public:
  Fields(const std::string &path, std::string where, const json &object)
      : path(path), where(std::move(where)), object(object) {
    if (!object.is_object())
      refuse(path, this->where + " is no object");
  }

  int64_t integer(const char *name, int64_t least, int64_t end) const {
    const json &value = get(name);
    if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() >= end)
      refuse(path, where + " has no '" + name + "' from " + std::to_string(least) + " to " +
                       std::to_string(end - 1));
    return value.get<int64_t>();
  }
  /// -1 where it is not there.
  int index(const char *name, size_t end) const {
    return object.contains(name) ? int(integer(name, 0, int64_t(end))) : -1;
  }
  double amount(const char *name) const {
    const json &value = get(name);
    if (!value.is_number() || !(value.get<double>() >= 0) || std::isinf(value.get<double>()))
      refuse(path, where + ": '" + name + "' is no amount");
    return value.get<double>();
  }
  int64_t bytes(const char *name) const {
    const json &value = get(name);
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > mostBytes)
      refuse(path, where + ": '" + name + "' is no amount");
    return value.get<int64_t>();
  }
  bool flag(const char *name) const {
    const json &value = get(name);
    if (!value.is_boolean())
      refuse(path, where + ": '" + name + "' is neither true nor false");
    return value.get<bool>();
  }
  const json &at(const char *name) const { return get(name); }
  std::string text(const char *name) const {
    const json &value = get(name);
    if (!value.is_string())
      refuse(path, where + ": '" + name + "' is no text");
    return value.get<std::string>();
  }
  bool has(const char *name) const { return object.contains(name); }
  const json &list(const char *name) const {
    const json &value = get(name);
    if (!value.is_array())
      refuse(path, where + ": '" + name + "' is no list");
    return value;
  }

private:
  const json &get(const char *name) const {
    auto found = object.find(name);
    if (found == object.end())
      refuse(path, where + " has no '" + name + "'");
    return *found;
  }

  const std::string &path;
  std::string where;
  const json &object;
};

template <typename Kind, size_t count>
Kind kindCalled(const std::array<Kind, count> &kinds, const std::string &name,
                const std::string &path) {
  for (Kind kind : kinds)
    if (planning::nameOf(kind) == name)
      return kind;
  refuse(path, "'" + name + "' is unknown");
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
      refuse(path, "has " + std::to_string(chunks.size()) + " chunks for " +
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
      refuse(path, "the schedule cannot run: " + fault);
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
      refuse(path, "'" + shared + "' is unknown");
    plan.updatesInParts = fields.flag("updates_in_parts");
    Fields arenas(path, "'arenas'", fields.at("arenas"));
    plan.arenas.parameters = arenas.bytes("parameters");
    plan.arenas.gradients = arenas.bytes("gradients");
    plan.arenas.state = arenas.bytes("optimizer_state");
    plan.arenas.workspace = arenas.bytes("workspace");
    plan.arenas.constants = arenas.bytes("constants");
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
        refuse(path, "a bucket of '" + function + "' is out of order");
      if (found.behind > 1 || (!isFirst && found.behind < chunk.buckets.back().behind))
        refuse(path, "the buckets of '" + function + "' are out of order");
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
      refuse(path, "a boundary leads back");
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
      refuse(path,
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
        refuse(path, "has no entry function '" + entry + "', which stages.json names");
}

} // namespace

json readDocument(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    throw failure(exit_data, path + ": cannot be read\n  try: the output folder of trainc that "
                                    "trains, or a file that is there");
  json document = bounded_json(text.str(), deepest);
  const char *advice = "\n  try: the file as it was written";
  if (!document.is_object())
    throw failure(exit_data, path + ": is no JSON object" + advice);
  if (auto version = document.find("version"); version != document.end() && *version != 1)
    throw failure(exit_data, path + ": has another version than 1" + advice);
  return document;
}

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
