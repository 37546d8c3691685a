// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/step_plan.h"

#include "runtime/observe/living_bytes.h"
#include "runtime/observe/plan_file.h"

#include <algorithm>
#include <fstream>

namespace trainc {
namespace {

using nlohmann::json;

std::string without_spaces_around(const std::string &text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The words end with the first name.
void add_nodes(planned_step &step, const json &names) {
  step.nodes = names.get<std::vector<std::string>>();
  const std::string first = step.nodes.empty() ? "" : step.nodes.front();
  if (step.words.size() > first.size() && step.words.ends_with(first))
    step.kernel = without_spaces_around(step.words.substr(0, step.words.size() - first.size()));
}

void add_all_nodes(std::vector<planned_step> &steps, const json &entry) {
  const json &computes = entry.at("computes");
  for (size_t i = 0; i < steps.size() && i < computes.size(); ++i)
    add_nodes(steps[i], computes[i]);
}

// Steps with the same kernel have the same cost.
void add_costs(std::vector<planned_step> &steps, const json &entry) {
  std::map<std::string, const json *> kernels;
  for (const json &kernel : entry.at("kernels")) {
    const auto words = kernel.at("step").get<std::string>();
    kernels[words.substr(0, words.find("  ["))] = &kernel;
  }
  for (planned_step &step : steps)
    if (auto known = kernels.find(step.kernel); known != kernels.end()) {
      step.flops = known->second->at("flops_each").get<double>();
      step.bytes = known->second->at("bytes_each").get<double>();
    }
}

void add_memory(std::vector<planned_step> &steps, const json &entry) {
  for (planned_step &step : steps)
    step.alive = 0;
  for (const char *arena : {"activations", "stash"}) {
    const living_bytes living = living_bytes_of(entry, arena);
    for (size_t i = 0; i < std::min(steps.size(), living.at.size()); ++i)
      steps[i].alive += living.at[i];
  }
}

bool add_file(planned_steps &functions, const std::string &path,
              void (*add)(std::vector<planned_step> &, const json &)) {
  const std::optional<json> plan = read_plan_file(path);
  if (!plan)
    return false;
  try {
    for (const json &entry : plan->at("entries"))
      if (auto known = functions.find(entry.at("entry").get<std::string>());
          known != functions.end())
        add(known->second, entry);
  } catch (const json::exception &) { // whatever is not as it should be
    return false;
  }
  return true;
}

} // namespace

size_t length_of_prefix(const std::string &node) {
  size_t length = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string prefix : {"gradient of ", "recomputed "})
      if (node.compare(length, prefix.size(), prefix) == 0) {
        length += prefix.size();
        found = true;
      }
  }
  return length;
}

std::string module_of(const std::string &node) {
  const std::string name = node.substr(length_of_prefix(node));
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

planned_steps read_step_words(const std::string &path) {
  planned_steps functions;
  std::ifstream file(path);
  std::vector<planned_step> *function = nullptr;
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(": ");
    if (!line.empty() && line[0] != ' ' && colon != std::string::npos) {
      function = &functions[line.substr(0, colon)];
    } else if (size_t begin = line.find_first_not_of(" 0123456789");
               function && begin != std::string::npos) {
      planned_step &step = function->emplace_back();
      step.words = without_spaces_around(line.substr(begin));
      step.kernel = step.words;
    }
  }
  return functions;
}

std::vector<std::string> add_details(planned_steps &functions, const std::string &folder) {
  std::vector<std::string> problems;
  for (const auto &[name, add] :
       {std::pair("/nodes.json", &add_all_nodes), std::pair("/kernels.json", &add_costs),
        std::pair("/memory.json", &add_memory)})
    if (!add_file(functions, folder + name, add))
      problems.push_back(folder + name);
  return problems;
}

std::map<std::string, node_origin> read_origins(const std::string &folder) {
  std::map<std::string, node_origin> origins;
  const std::optional<json> plan = read_plan_file(folder + "/nodes.json");
  if (!plan)
    return origins;
  try {
    for (const json &node : plan->at("nodes"))
      if (node.contains("name"))
        origins[node.at("name").get<std::string>()] = {node.at("operator").get<std::string>(),
                                                       node.value("source", "")};
  } catch (const json::exception &) { // whatever is not as it should be
    return {};
  }
  return origins;
}

planned_steps read_planned_steps(const std::string &folder, bool has_details,
                                 const std::function<void(const std::string &)> &warn) {
  const std::string path = folder + "/steps.txt";
  planned_steps plan = read_step_words(path);
  if (plan.empty())
    warn(path + ": has no steps: they have numbers alone");
  if (has_details)
    for (const std::string &other : add_details(plan, folder))
      warn(other + ": cannot be used: what it says is missing");
  return plan;
}

} // namespace trainc
