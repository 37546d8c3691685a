// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/explored_program.h"

#include "tools/inspect/emitted_source.h"
#include "tools/inspect/name_search.h"
#include "tools/inspect/plan_text.h"
#include "tools/inspect/step_texts.h"
#include "tools/inspect/step_times.h"

#include "llvm/ADT/StringRef.h"

#include <filesystem>
#include <map>
#include <optional>

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

class ExploredProgram {
public:
  ExploredProgram(const std::string &folder, const ExploredPasses &passes, ordered_json &document)
      : folder(folder), passes(passes), document(document), program(readProgramNames(folder)),
        search(program) {
    if (std::filesystem::exists(folder + "/source"))
      source.emplace(folder);
  }

  void addAll(const std::string &profile) {
    addNodes();
    addSteps(profile);
    addTensors();
    addSubjects();
    addStepsOfOperations();
    if (source)
      addSource();
  }

private:
  void addNodes() {
    for (const NodeNames &node : program.nodes)
      document["nodes"].push_back(
          {{"node", node.node}, {"operator", node.operation}, {"values", node.values}});
  }

  void addSteps(const std::string &profile) {
    const StepTexts texts(folder);
    std::map<std::pair<std::string, int>, StepTime> times;
    if (!profile.empty())
      times = readStepTimes(profile);
    for (const NamedStep &step : program.steps) {
      ordered_json added = {{"entry", step.entry},
                            {"step", step.number},
                            {"text", texts.of(step)},
                            {"computes", step.computes}};
      if (source)
        addLines(step, added);
      if (auto time = times.find({step.entry, step.number}); time != times.end()) {
        added["seconds"] = time->second.seconds;
        added["times"] = time->second.times;
      }
      document["steps"].push_back(std::move(added));
    }
  }

  void addLines(const NamedStep &step, ordered_json &added) const {
    const auto add = [&](const char *name, std::optional<SourceLines> lines) {
      if (lines)
        added[name] = {lines->first, lines->last};
    };
    add("lines", source->linesOfStep(step.entry, step.number));
    add("kernel_lines", source->linesOfKernel(step.entry, step.number));
    if (std::string kernel = source->kernelOf(step.entry, step.number); !kernel.empty())
      added["kernel"] = kernel;
  }

  void addTensors() {
    for (const NamedTensor &tensor : program.tensors) {
      const int number = int(document["tensors"].size());
      ordered_json added = {{"tensor", tensor.name},   {"entry", tensor.entry},
                            {"arena", tensor.arena},   {"offset", tensor.offset},
                            {"bytes", tensor.bytes},   {"first_step", tensor.first},
                            {"last_step", tensor.last}};
      if (source)
        added["used_by"] = source->stepsWith(tensor);
      document["tensors"].push_back(std::move(added));
      for (const std::string &name : search.namesOf(tensor))
        tensorsOf[name].push_back(number);
    }
  }

  void addSubjects() {
    std::map<std::string, int> numbers;
    const StringTable &subjects = passes.subjects();
    for (size_t i = 0; i < subjects.size(); ++i)
      numbers[subjects.at(int(i))] = int(i);
    for (size_t i = 0; i < subjects.size(); ++i)
      addSubject(subjects.at(int(i)), numbers, document["subjects"][i]);
  }

  void addSubject(const std::string &name, const std::map<std::string, int> &numbers,
                  ordered_json &subject) {
    const std::string whole = search.computedAs(name);
    if (auto known = numbers.find(whole); whole != name && known != numbers.end())
      subject["part_of"] = known->second;
    for (const NodeNames *node : search.nodesOf(name))
      subject["nodes"].push_back(node - program.nodes.data());
    if (const ParameterNames *parameter = search.parameterOf(name))
      subject["parameter"] = parameter->others;
    for (const NamedStep *step : search.stepsOf(whole))
      subject["steps"].push_back(step - program.steps.data());
    if (auto tensors = tensorsOf.find(whole); tensors != tensorsOf.end())
      subject["tensors"] = tensors->second;
  }

  /// Steps and the operations that they were printed from have one order and the same names. A
  /// function where this leaves a step over has no numbers at its operations.
  void addStepsOfOperations() {
    std::map<std::string, std::vector<const EntryOperation *>> operations;
    for (const EntryOperation &each : passes.lastOperations())
      if (llvm::StringRef(each.operation).starts_with("kernel."))
        operations[each.entry].push_back(&each);
    ordered_json of = ordered_json::array();
    for (size_t i = 0; i < program.steps.size();) {
      const std::string &entry = program.steps[i].entry;
      const size_t begin = i;
      ordered_json found = ordered_json::array();
      for (const EntryOperation *each : operations[entry])
        if (i < program.steps.size() && program.steps[i].entry == entry &&
            program.steps[i].computes == each->titles)
          found.push_back({each->index, i++});
      if (i == program.steps.size() || program.steps[i].entry != entry)
        of.insert(of.end(), found.begin(), found.end());
      for (i = begin; i < program.steps.size() && program.steps[i].entry == entry;)
        ++i;
    }
    document["steps_of_last_pass"] = of;
  }

  void addSource() {
    for (auto [name, file] :
         {std::pair("steps", source->fileOfSteps()), std::pair("kernels", source->fileOfKernels())})
      document["source"][name] = {{"file", file}, {"text", readText(file)}};
  }

  const std::string &folder;
  const ExploredPasses &passes;
  ordered_json &document;
  const ProgramNames program;
  const NameSearch search;
  std::optional<EmittedSource> source;
  std::map<std::string, std::vector<int>> tensorsOf; // numbers by what they are of
};

} // namespace

void addNames(const ExploredPasses &passes, ordered_json &document) {
  const StringTable &subjects = passes.subjects();
  document["subjects"] = ordered_json::array();
  for (size_t i = 0; i < subjects.size(); ++i) {
    document["subjects"].push_back({{"name", subjects.at(int(i))}});
    if (!passes.labels()[i].empty())
      document["subjects"][i]["labels"] = passes.labels()[i];
  }
}

void addProgram(const std::string &folder, const std::string &profile, const ExploredPasses &passes,
                ordered_json &document) {
  ExploredProgram(folder, passes, document).addAll(profile);
}

} // namespace trainc::inspect
