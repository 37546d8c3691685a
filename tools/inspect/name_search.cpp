// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/name_search.h"

#include "passes/options/nearest_name.h"
#include "runtime/plan/titles.h"

#include "llvm/ADT/STLExtras.h"

namespace trainc::inspect {

namespace {

std::string moduleOf(const std::string &name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

void addOnce(const std::string &name, std::vector<std::string> &names) {
  if (!llvm::is_contained(names, name))
    names.push_back(name);
}

} // namespace

std::string subjectOf(const std::string &title) {
  constexpr std::string_view ofBuffer = "new "; // value
  std::string rest = name_in(title);
  while (rest.rfind(ofBuffer, 0) == 0)
    rest = name_in(rest.substr(ofBuffer.size()));
  return rest;
}

std::vector<std::string> fileNamesOf(const planned_parameter &parameter) {
  std::vector<std::string> names = {parameter.name};
  for (const tied_name &other : parameter.tied)
    names.push_back(other.name);
  return names;
}

NameSearch::NameSearch(const plan &program) : program(program) {
  for (const planned_entry &entry : program.entries) {
    for (const planned_step &step : entry.steps)
      everyStep.push_back({&entry, int(&step - entry.steps.data()), &step});
    for (const planned_tensor &tensor : entry.tensors)
      everyTensor.push_back({&entry, int(&tensor - entry.tensors.data()), &tensor});
  }
  for (const StepOfEntry &step : everyStep)
    for (const std::string &title : step->computes)
      if (auto &of = steps[subjectOf(title)]; of.empty() || of.back() != &step)
        of.push_back(&step);
  for (const TensorOfEntry &tensor : everyTensor) {
    stored.insert(tensor->name);
    stored.insert(subjectOf(tensor->name));
  }
  for (const planned_node &node : program.nodes) {
    if (node.name.empty())
      continue;
    nodes[node.name].push_back(&node);
    if (std::string whole = computedAs(node.name); whole != node.name)
      parts[whole].push_back(&node);
  }
}

std::string NameSearch::computedAs(const std::string &name) const {
  const std::string module = moduleOf(name);
  return isComputed(name) || isStored(name) || !isComputed(module) ? name : module;
}

std::vector<const planned_node *> NameSearch::nodesOf(const std::string &name) const {
  for (const auto *named : {&nodes, &parts})
    if (auto found = named->find(name); found != named->end())
      return found->second;
  return {};
}

std::vector<const StepOfEntry *> NameSearch::stepsOf(const std::string &name) const {
  auto found = steps.find(name);
  return found == steps.end() ? std::vector<const StepOfEntry *>() : found->second;
}

std::vector<std::string> NameSearch::namesOf(const TensorOfEntry &tensor) const {
  const std::string subject = subjectOf(tensor->name);
  std::vector<std::string> names = {subject};
  addOnce(tensor->name, names);
  const std::string module = moduleOf(subject);
  if (!module.empty() && nodesOf(subject).empty() && !parameterOf(subject))
    addOnce(module, names);
  return names;
}

const planned_parameter *NameSearch::parameterOf(const std::string &name) const {
  for (const planned_parameter &parameter : program.parameters)
    if (parameter.module_name == name)
      return &parameter;
  return nullptr;
}

void NameSearch::addExact(const std::string &name, Meaning &meaning) const {
  for (const planned_node &node : program.nodes) {
    if (node.label != name && node.name != name && !llvm::is_contained(node.values, name))
      continue;
    if (node.name.empty())
      meaning.unoperated.push_back(&node);
    else
      addOnce(node.name, meaning.names);
  }
  for (const planned_parameter &parameter : program.parameters)
    if (parameter.module_name == name || llvm::is_contained(fileNamesOf(parameter), name))
      addOnce(parameter.module_name, meaning.names);
  if (isComputed(name) || isStored(name))
    addOnce(name, meaning.names);
}

void NameSearch::addMembers(const std::string &module, Meaning &meaning) const {
  std::set<std::string> known;
  auto add = [&](const std::string &name) {
    if (name.starts_with(module + ".") && known.insert(name).second)
      meaning.names.push_back(name);
  };
  for (const planned_node &node : program.nodes)
    add(node.name);
  for (const planned_parameter &parameter : program.parameters)
    add(parameter.module_name);
}

Meaning NameSearch::find(const std::string &name) const {
  Meaning meaning;
  addExact(name, meaning);
  if (meaning.isEmpty())
    addMembers(name, meaning);
  return meaning;
}

std::vector<std::string> NameSearch::nearest(const std::string &name) const {
  constexpr size_t kMost = 3;
  std::set<std::string> all = stored;
  auto add = [&](const std::string &known) {
    for (std::string module = known; !module.empty(); module = moduleOf(module))
      all.insert(module);
  };
  for (const planned_node &node : program.nodes) {
    all.insert(node.label);
    all.insert(node.values.begin(), node.values.end());
    add(node.name);
  }
  for (const planned_parameter &parameter : program.parameters) {
    for (const std::string &named : fileNamesOf(parameter))
      all.insert(named);
    add(parameter.module_name);
  }
  return nearestNames({all.begin(), all.end()}, name, kMost);
}

} // namespace trainc::inspect
