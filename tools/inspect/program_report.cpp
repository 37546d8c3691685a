// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/program_report.h"

#include "tools/inspect/memory_picture.h"
#include "tools/inspect/planned_schedule.h"
#include "tools/inspect/step_times.h"
#include "tools/simulate/json_document.h"

#include <algorithm>
#include <map>

namespace trainc::inspect {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr size_t kMostKernels = 300, kMostTensors = 40; // of a table
constexpr size_t kMostBoxes = 5000;                     // of a picture: 1 MB

/// The greatest by a member, and how many there are.
ordered_json greatest(std::vector<ordered_json> rows, const char *by, size_t most) {
  std::stable_sort(rows.begin(), rows.end(), [&](const ordered_json &a, const ordered_json &b) {
    return a[by].get<double>() > b[by].get<double>();
  });
  const size_t all = rows.size();
  rows.resize(std::min(all, most));
  return {{"all", all}, {"rows", rows}};
}

/// The bytes of the activations arena that a function uses.
int64_t activationsOf(const planned_entry &entry) {
  int64_t bytes = 0;
  for (const planned_tensor &tensor : entry.tensors)
    if (tensor.arena == "activations")
      bytes = std::max(bytes, tensor.offset + tensor.bytes);
  return bytes;
}

class ProgramReport {
public:
  ProgramReport(const std::string &folder, const plan &program, const std::string &profile)
      : folder(folder), program(program), profile(profile) {}

  ordered_json make() {
    report["folder"] = folder;
    addKernels();
    addMemory();
    addSchedule();
    return std::move(report);
  }

private:
  void addKernels() {
    std::vector<ordered_json> rows;
    for (const planned_entry &entry : program.entries)
      for (const planned_kernel &kernel : entry.kernels)
        rows.push_back({{"entry", entry.name},
                        {"step", kernel.whole_text()},
                        {"form", kernel.form},
                        {"times", double(kernel.count)},
                        {"flops", kernel.count * kernel.flops},
                        {"bytes", double(kernel.count) * double(kernel.bytes)}});
    report["kernels"] = greatest(std::move(rows), "bytes", kMostKernels);
  }

  void addMemory() {
    for (const planned_arena &arena : program.memory.arenas)
      report["arenas"].push_back(
          {{"arena", arena.name}, {"bytes", arena.bytes}, {"lower_bound", arena.lower_bound}});
    if (program.entries.empty())
      return;
    const planned_entry &most =
        *std::max_element(program.entries.begin(), program.entries.end(),
                          [](const planned_entry &a, const planned_entry &b) {
                            return activationsOf(a) < activationsOf(b);
                          });
    std::vector<ordered_json> rows;
    for (const planned_tensor &tensor : most.tensors)
      if (tensor.is_at_peak)
        rows.push_back({{"tensor", tensor.name},
                        {"bytes", tensor.bytes},
                        {"first_step", tensor.first},
                        {"last_step", tensor.last}});
    report["at_peak"] = greatest(std::move(rows), "bytes", kMostTensors);
    if (most.tensors.size() <= kMostBoxes)
      report["memory_picture"] = memoryPicture(most);
  }

  /// A step in one piece, and a program without a step, have no schedule.
  void addSchedule() {
    if (!program.stages || !program.stages->is_cut())
      return;
    const simulate::StagePlan plan = simulate::stagePlanOf(folder, program);
    const PlannedSchedule planned =
        profile.empty() ? predictedSchedule(plan) : profiledSchedule(plan, profile);
    report["schedule"] = {{"title", planned.title}, {"bubble", planned.times.bubble}};
    size_t boxes = 0;
    for (const std::vector<planning::Action> &actions : plan.schedule.actions)
      boxes += actions.size();
    if (boxes <= kMostBoxes)
      report["schedule"]["picture"] =
          simulate::schedulePicture(plan.schedule, planned.times, planned.title, planned.axis);
  }

  const std::string &folder;
  const plan &program;
  const std::string &profile;
  ordered_json report;
};

/// Of the first replica: equal steps of a function and stage are one row.
std::vector<ordered_json> profiledKernels(const json &ranks) {
  std::map<std::tuple<int64_t, std::string, std::string>, std::pair<double, double>> kernels;
  for (const json &rank : ranks)
    if (rank.at("replica") == 0)
      for (const json &entry : rank.at("entries")) {
        const double times = entry.at("times");
        int64_t number = 0;
        for (const json &step : entry.at("steps")) {
          const std::string name = step.value("step", "step " + std::to_string(number++));
          auto &[launches, seconds] =
              kernels[{rank.at("stage").get<int64_t>(), entry.at("entry"), name}];
          launches += times;
          seconds += times * step.at("seconds").get<double>();
        }
      }
  std::vector<ordered_json> rows;
  for (const auto &[key, spent] : kernels)
    rows.push_back({{"stage", std::get<0>(key)},
                    {"entry", std::get<1>(key)},
                    {"step", std::get<2>(key)},
                    {"times", spent.first},
                    {"seconds", spent.second}});
  return rows;
}

/// What a profile calls an action. In a step in one piece one function does forward and backward.
std::string nameOf(const json &action, const json &entries) {
  std::string name = action.at("action");
  const bool isWhole = std::any_of(entries.begin(), entries.end(), [](const json &entry) {
    return entry.at("entry") == "forward_backward";
  });
  return isWhole && name == "backward" ? "forward and backward" : name;
}

std::vector<ordered_json> profiledActions(const json &ranks) {
  std::vector<ordered_json> rows;
  for (const json &rank : ranks)
    if (rank.at("replica") == 0)
      for (const json &action : rank.at("actions")) {
        const double times = action.at("times");
        std::string name = nameOf(action, rank.at("entries"));
        for (const char *part : {"boundary", "chunk"})
          if (action.contains(part)) {
            name += " " + action[part].dump();
            break;
          }
        rows.push_back({{"stage", rank.at("stage").get<int64_t>()},
                        {"action", name},
                        {"times", times},
                        {"seconds", times * action.at("seconds").get<double>()},
                        {"waiting", times * action.at("waiting").get<double>()}});
      }
  return rows;
}

} // namespace

ordered_json programReport(const std::string &folder, const plan &program,
                           const std::string &profile) {
  return ProgramReport(folder, program, profile).make();
}

ordered_json profileReport(const std::string &path) {
  const json document = simulate::readDocument(path);
  try {
    ordered_json report = {{"file", path}};
    for (const char *name : {"model", "fingerprint", "graph", "target", "device", "shard"})
      report[name] = document.value(name, std::string());
    for (const char *name : {"stages", "replicas", "micro_batches", "steps"})
      report[name] = document.at(name).get<int64_t>();
    report["seconds"] = document.at("seconds").get<double>();
    report["kernels"] = greatest(profiledKernels(document.at("ranks")), "seconds", kMostKernels);
    report["actions"] = profiledActions(document.at("ranks"));
    return report;
  } catch (const json::exception &problem) {
    refuseProfile(path, problem.what());
  }
}

} // namespace trainc::inspect
