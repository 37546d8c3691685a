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
    plan.workspaceBytes = fields.amount("workspace_bytes");
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
    chunk.parameterBytes = fields.amount("parameter_bytes");
    chunk.gradientBytes = fields.amount("gradient_bytes");
    chunk.stateBytes = fields.amount("state_bytes");
    chunk.activationBytes = fields.amount("activation_bytes");
    chunk.slotBytes = fields.amount("slot_bytes");
    plan.schedule.stashSlots.push_back(int(fields.integer("slots", 1, most)));
    plan.chunks.push_back(std::move(chunk));
  }

  double bytesOf(const json &tensors) const {
    double bytes = 0;
    for (const json &tensor : tensors)
      bytes += Fields(path, "a tensor", tensor).amount("bytes");
    return bytes;
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
    plan.boundaries.push_back(
        {bytesOf(fields.list("activations")), bytesOf(fields.list("gradients"))});
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
