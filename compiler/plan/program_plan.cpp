// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/program_plan.h"
#include "compiler/emit/program_tables.h"
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/plan_tables.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace trainc {

namespace {

constexpr unsigned kDigits = 16; // of a fingerprint

planned_program identityOf(ModuleOp module) {
  return {train::modelNameOf(module).str(),
          llvm::utohexstr(fingerprintOf(module), /*LowerCase=*/true, kDigits),
          train::graphDigestOf(module).str(),
          train::objectiveOf(module).str(),
          train::optimizerNameOf(module).str(),
          train::precisionOf(module).str()};
}

/// Kernels and steps of each entry function beside its tensors.
void addKernels(ModuleOp module, std::vector<planned_entry> &entries) {
  std::vector<planned_entry> listed = describeKernels(module);
  check(listed.size() == entries.size(), module, "an entry function has no list of kernels");
  for (auto [entry, found] : llvm::zip(entries, listed)) {
    found.peak = entry.peak;
    found.tensors = std::move(entry.tensors);
    entry = std::move(found);
  }
}

/// Of those that the program holds, what a step does with the argument.
llvm::StringMap<std::pair<StringRef, bool>> rolesOf(ModuleOp module) {
  llvm::StringMap<std::pair<StringRef, bool>> roles;
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  if (!function)
    function = module.lookupSymbol<func::FuncOp>("evaluate");
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto role = train::roleAs<train::ParameterAttr>(function, i))
      roles[role.getName()] = {role.isFrozen() ? "frozen" : "trained",
                               role.getRun() == train::Run::decayed};
    else if (auto buffer = train::roleAs<train::BufferAttr>(function, i))
      roles[buffer.getName()] = {"buffer", false};
  return roles;
}

/// What the table of parameters cannot know: the loss comes later.
bool isUnreached(const Parameter &parameter, ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("forward_backward");
  for (unsigned i = 0; step && !parameter.isFrozen() && i < step.getNumArguments(); ++i)
    if (auto role = train::roleAs<train::ParameterAttr>(step, i);
        role && role.isFrozen() && parameter.name == role.getName().getValue())
      return true;
  return false;
}

void addParameters(const Model &model, ModuleOp module, plan &described) {
  for (StringRef line : llvm::split(StringRef(model.parameterTable).rtrim('\n'), '\n'))
    described.parameter_table.push_back(line.str());
  const llvm::StringMap<std::pair<StringRef, bool>> roles = rolesOf(module);
  for (const Parameter &parameter : model.parameters) {
    planned_parameter &planned = described.parameters.emplace_back();
    planned.name = parameter.name;
    planned.module_name = parameter.moduleName;
    planned.shape = parameter.shape;
    planned.reason = parameter.reason;
    planned.group = parameter.group;
    for (const TensorName &other : parameter.tied)
      planned.tied.push_back({other.name, other.transposed});
    if (auto role = roles.find(parameter.name); role != roles.end()) {
      planned.role = role->second.first.str();
      planned.decays = role->second.second;
    }
    if (isUnreached(parameter, module))
      described.parameter_table.push_back("keeps its value, since it does not reach the loss: " +
                                          parameter.name);
  }
}

} // namespace

plan programPlan(const Model &model, ModuleOp module, StringRef target) {
  plan described = describeMemory(module);
  described.program = identityOf(module);
  addKernels(module, described.entries);
  for (const NamedNode &node : model.nodes) {
    planned_node &planned = described.nodes.emplace_back();
    planned = {node.label, node.operation, node.name, node.source, {}};
    for (const std::string &value : node.outputs)
      if (!value.empty())
        planned.values.push_back(value);
  }
  addParameters(model, module, described);
  if (module.lookupSymbol("update")) { // it trains
    described.stages = describeStages(module, target);
    described.recompute = describeRecompute(module);
  }
  return described;
}

} // namespace trainc
