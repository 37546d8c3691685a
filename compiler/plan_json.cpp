// SPDX-License-Identifier: Apache-2.0
//
// Every document is an object with `version`; bytes and steps are numbers, names are those of the
// text.
#include "compiler/plan_json.h"
#include "compiler/json_text.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace llvm;

namespace trainc {

constexpr unsigned kIndent = 2;

/// Indented: people and `diff` read it too.
static std::string documentText(json::Object object) {
  object["version"] = kPlanVersion;
  std::string text;
  raw_string_ostream(text) << formatv("{0:2}", json::Value(std::move(object))) << "\n";
  return text;
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
          json.attribute("at_peak", tensor.isAtPeak);
          json.attribute("bytes", tensor.bytes);
          json.attribute("first_step", tensor.first);
          json.attribute("last_step", tensor.last);
          json.attribute("offset", tensor.offset);
          json.attribute("tensor", jsonText(tensor.name));
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
    json.attribute("bytes", plan.bytes());
    json.attributeArray("entries", [&] {
      for (const PlannedEntry &entry : plan.entries)
        writeEntry(json, entry);
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
    for (const TiedInitializer &other : parameter.tied)
      tied.push_back(
          json::Object{{"name", jsonText(other.onnxName)}, {"transposed", other.transposed}});
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

} // namespace trainc
