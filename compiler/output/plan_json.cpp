// SPDX-License-Identifier: Apache-2.0
//
// Every document is an object with `version`; bytes and steps are numbers, names are those of the
// text.
#include "compiler/output/plan_json.h"
#include "compiler/emit/program_tables.h"
#include "compiler/json_text.h"
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc {

constexpr unsigned kIndent = 2;
constexpr unsigned kDigits = 16; // of a fingerprint

/// Indented: people and `diff` read it too.
static std::string documentText(json::Object object) {
  object["version"] = kPlanVersion;
  std::string text;
  raw_string_ostream(text) << formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
}

std::string programJson(mlir::ModuleOp module) {
  const std::string fingerprint = utohexstr(fingerprintOf(module), /*LowerCase=*/true, kDigits);
  return documentText(json::Object{{"fingerprint", fingerprint},
                                   {"graph", train::graphDigestOf(module)},
                                   {"model", jsonText(train::modelNameOf(module))},
                                   {"objective", jsonText(train::objectiveOf(module))},
                                   {"optimizer", train::optimizerNameOf(module)},
                                   {"precision", train::precisionOf(module)}});
}

static void writeEntry(json::OStream &json, const PlannedEntry &entry) {
  json.object([&] {
    json.attribute("entry", entry.name);
    if (entry.peak >= 0)
      json.attribute("peak_step", entry.peak);
    json.attribute("steps", entry.steps);
    json.attributeArray("tensors", [&] {
      for (const PlannedTensor &tensor : entry.tensors)
        json.object([&] {
          json.attribute("arena", tensor.arena);
          json.attribute("argument", tensor.isArgument);
          json.attribute("at_peak", tensor.isAtPeak);
          json.attribute("bytes", tensor.bytes);
          json.attribute("first_step", tensor.first);
          json.attribute("last_step", tensor.last);
          json.attribute("offset", tensor.offset);
          json.attributeArray("shape", [&] {
            for (int64_t size : tensor.shape)
              json.value(size);
          });
          json.attribute("tensor", jsonText(tensor.name));
          json.attribute("type", tensor.type);
        });
    });
  });
}

std::string memoryPlanJson(const MemoryTable &plan) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream json(stream, kIndent); // a tensor for each of many nodes: no document in memory
  json.object([&] {
    json.attributeArray("arenas", [&] {
      for (const PlannedArena &arena : plan.arenas)
        json.object([&] {
          json.attribute("arena", arena.name);
          json.attribute("bytes", arena.bytes);
          json.attribute("lower_bound", arena.lowerBound);
        });
    });
    json.attribute("bytes", plan.arenaBytes());
    if (plan.inRun)
      json.attribute("bytes_in_run", plan.bytes());
    json.attributeArray("entries", [&] {
      for (const PlannedEntry &entry : plan.entries)
        writeEntry(json, entry);
    });
    json.attributeArray("of_ranks", [&] {
      for (const PlannedRank &row : plan.ofRanks)
        json.object([&] {
          json.attribute("ranks_on_host", row.ranks);
          json.attribute("micro_batches", row.microBatches);
          json.attribute("shard", row.shard);
          json.attribute("bytes", row.bytes);
        });
    });
    json.attribute("version", kPlanVersion);
  });
  stream << '\n';
  return text;
}

std::string kernelListJson(const std::vector<ListedEntry> &entries) {
  json::Array all;
  for (const ListedEntry &entry : entries) {
    json::Array kernels;
    for (const ListedKernel &kernel : entry.kernels)
      kernels.push_back(json::Object{{"form", kernel.form},
                                     {"step", jsonText(kernel.text)},
                                     {"times", kernel.count},
                                     {"flops_each", kernel.flops},
                                     {"bytes_each", kernel.bytes}});
    all.push_back(json::Object{{"entry", entry.name},
                               {"steps", entry.steps},
                               {"flops", entry.flops},
                               {"bytes", entry.bytes},
                               {"least_bytes", entry.leastBytes},
                               {"kernels", std::move(kernels)}});
  }
  return documentText(json::Object{{"entries", std::move(all)}});
}

std::string recomputeJson(const RecomputeTable &plan) {
  json::Array steps, kept;
  for (const RecomputedStep &step : plan.steps)
    steps.push_back(json::Object{
        {"tensors", jsonText(step.tensors)}, {"flops", step.flops}, {"bytes_moved", step.bytes}});
  for (const KeptTensor &tensor : plan.kept)
    kept.push_back(json::Object{{"tensor", jsonText(tensor.name)},
                                {"bytes", tensor.bytes},
                                {"first_step", tensor.first},
                                {"last_step", tensor.last}});
  return documentText(json::Object{{"rule", plan.rule},
                                   {"bytes", plan.bytes},
                                   {"bytes_keeping_all", plan.keptBytes},
                                   {"predicted_time", plan.time},
                                   {"flops", plan.flops},
                                   {"computed_again", std::move(steps)},
                                   {"kept", std::move(kept)}});
}

static json::Object actionJson(const planning::Action &action) {
  json::Object object{{"action", planning::nameOf(action.kind)}};
  auto add = [&](StringRef name, int number) {
    if (number >= 0)
      object[name] = number;
  };
  bool isMessage = planning::isSend(action.kind) || planning::isReceive(action.kind);
  add("chunk", action.chunk);
  add("micro_batch", action.microBatch);
  add("boundary", action.boundary);
  add("peer", action.peer);
  add(isMessage ? "place" : "slot", action.slot);
  add("shared", action.shared);
  return object;
}

static json::Array tensorsJson(const std::vector<CrossingTensor> &tensors) {
  json::Array all;
  for (const CrossingTensor &tensor : tensors)
    all.push_back(json::Object{{"tensor", jsonText(tensor.name)}, {"bytes", bytesOf(tensor.type)}});
  return all;
}

static json::Object chunkJson(const PlannedChunk &chunk, int slots) {
  json::Object object{{"backward", chunk.backward},
                      {"forward_time", chunk.forwardTime},
                      {"backward_time", chunk.backwardTime},
                      {"weight_gradient_share", chunk.weightGradientShare},
                      {"parameter_bytes", chunk.parameterBytes},
                      {"gradient_bytes", chunk.gradientBytes},
                      {"state_bytes", chunk.stateBytes},
                      {"activation_bytes", chunk.activationBytes},
                      {"slot_bytes", chunk.slotBytes},
                      {"slots", slots}};
  json::Array buckets;
  for (const PlannedBucket &bucket : chunk.buckets)
    buckets.push_back(json::Object{
        {"function", bucket.function}, {"bytes", bucket.bytes}, {"behind", bucket.behind}});
  object["buckets"] = std::move(buckets);
  if (!chunk.forward.empty())
    object["forward"] = chunk.forward;
  if (!chunk.weightGradient.empty())
    object["weight_gradient"] = chunk.weightGradient;
  return object;
}

static json::Object memoryJson(const rank_memory &rank) {
  return json::Object{{"parameter_bytes", rank.parameters},     {"gradient_bytes", rank.gradients},
                      {"accumulator_bytes", rank.accumulators}, {"state_bytes", rank.state},
                      {"activation_bytes", rank.activations},   {"stash_bytes", rank.stash},
                      {"message_bytes", rank.messages},         {"workspace_bytes", rank.workspace},
                      {"constant_bytes", rank.constants},       {"bytes", rank.bytes()}};
}

static StringRef nameOf(sharing shared) {
  return shared == sharing::gradients ? "gradients" : shared == sharing::state ? "state" : "none";
}

std::string stagesJson(const StageTable &plan, bool updatesInParts) {
  const planning::Schedule &schedule = plan.plan.schedule;
  json::Array chunks, boundaries, stages;
  for (auto [number, chunk] : enumerate(plan.chunks))
    chunks.push_back(chunkJson(chunk, schedule.stashSlots[number]));
  for (auto [number, boundary] : enumerate(plan.plan.boundaries))
    boundaries.push_back(json::Object{{"from", boundary.from},
                                      {"to", boundary.to},
                                      {"activations", tensorsJson(boundary.activations)},
                                      {"gradients", tensorsJson(boundary.gradients)},
                                      {"activation_places", schedule.activationPlaces[number]},
                                      {"gradient_places", schedule.gradientPlaces[number]}});
  const std::vector<rank_memory> ranks = plan.memoryOfRanks(1);
  for (auto [number, list] : enumerate(schedule.actions)) {
    json::Array actions;
    for (const planning::Action &action : list)
      actions.push_back(actionJson(action));
    stages.push_back(
        json::Object{{"actions", std::move(actions)}, {"memory", memoryJson(ranks[number])}});
  }
  const memory_needs &needs = plan.needs;
  return documentText(json::Object{{"schedule", planning::nameOf(schedule.kind)},
                                   {"micro_batches", schedule.pipeline.microBatches},
                                   {"chunks_per_stage", schedule.pipeline.chunksPerStage},
                                   {"cuts", json::Array(plan.cuts)},
                                   {"workspace_bytes", needs.workspace},
                                   {"target", plan.target},
                                   {"shared", nameOf(plan.shared)},
                                   {"updates_in_parts", updatesInParts},
                                   {"arenas", json::Object{{"parameters", needs.parameters},
                                                           {"gradients", needs.gradients},
                                                           {"optimizer_state", needs.state},
                                                           {"workspace", needs.workspace},
                                                           {"constants", needs.constants},
                                                           {"frozen", needs.frozen}}},
                                   {"chunks", std::move(chunks)},
                                   {"boundaries", std::move(boundaries)},
                                   {"stages", std::move(stages)}});
}

/// Of those that the program holds, what a step does with the argument.
static StringMap<std::pair<StringRef, bool>> rolesOf(mlir::ModuleOp module) {
  StringMap<std::pair<StringRef, bool>> roles;
  auto function = module.lookupSymbol<mlir::func::FuncOp>("forward_backward");
  if (!function)
    function = module.lookupSymbol<mlir::func::FuncOp>("evaluate");
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto role = train::roleAs<train::ParameterAttr>(function, i))
      roles[role.getName()] = {role.isFrozen() ? "frozen" : "trained",
                               role.getRun() == train::Run::decayed};
    else if (auto buffer = train::roleAs<train::BufferAttr>(function, i))
      roles[buffer.getName()] = {"buffer", false};
  return roles;
}

std::string parametersJson(const Model &model, mlir::ModuleOp module) {
  StringMap<std::pair<StringRef, bool>> roles = rolesOf(module);
  json::Array all;
  for (const Parameter &parameter : model.parameters) {
    auto role = roles.find(parameter.name);
    json::Array shape, tied;
    for (int64_t size : parameter.shape)
      shape.push_back(size);
    for (const TensorName &other : parameter.tied)
      tied.push_back(
          json::Object{{"name", jsonText(other.name)}, {"transposed", other.transposed}});
    json::Object object{{"name", jsonText(parameter.name)},
                        {"module_name", jsonText(parameter.moduleName)},
                        {"shape", std::move(shape)},
                        {"reason", jsonText(parameter.reason)},
                        {"tied", std::move(tied)}};
    if (!parameter.group.empty())
      object["group"] = parameter.group;
    if (role != roles.end()) {
      object["role"] = role->second.first;
      object["decays"] = role->second.second;
    }
    all.push_back(std::move(object));
  }
  return documentText(json::Object{{"parameters", std::move(all)}});
}

static void writeNodes(json::OStream &json, ArrayRef<NamedNode> nodes) {
  for (const NamedNode &node : nodes)
    json.object([&] {
      if (!node.name.empty())
        json.attribute("name", jsonText(node.name));
      json.attribute("node", jsonText(node.label));
      json.attribute("operator", jsonText(node.operation));
      if (!node.source.empty())
        json.attribute("source", jsonText(node.source));
      json.attributeArray("values", [&] {
        for (const std::string &value : node.outputs)
          if (!value.empty())
            json.value(jsonText(value));
      });
    });
}

static void writeComputations(json::OStream &json, mlir::func::FuncOp function) {
  json.object([&] {
    json.attributeArray("computes", [&] {
      for (auto step : function.front().getOps<kernel::StepOpInterface>())
        json.array([&] {
          for (const std::string &title : nodeTitles(step->getLoc()))
            json.value(jsonText(title));
        });
    });
    json.attribute("entry", function.getName());
  });
}

std::string nodesJson(const Model &model, mlir::ModuleOp module) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream json(stream, kIndent); // as many nodes as the model has: no document in memory
  json.object([&] {
    json.attributeArray("entries", [&] {
      for (auto function : module.getOps<mlir::func::FuncOp>())
        writeComputations(json, function);
    });
    json.attributeArray("nodes", [&] { writeNodes(json, model.nodes); });
    json.attribute("version", kPlanVersion);
  });
  stream << '\n';
  return text;
}

} // namespace trainc
