// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/explored_program.h"

#include "tools/inspect/mapped_source.h"
#include "tools/inspect/name_search.h"
#include "tools/inspect/step_times.h"
#include "tools/inspect/text_file.h"

#include "llvm/ADT/StringRef.h"

#include <filesystem>
#include <map>
#include <optional>

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

class ExploredProgram {
public:
  ExploredProgram(const std::string &folder, const plan &program, const ExploredPasses &passes,
                  ordered_json &document)
      : passes(passes), document(document), program(program), search(program) {
    if (std::filesystem::exists(folder + "/source"))
      source.emplace(folder, program);
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
    for (const planned_node &node : program.nodes)
      document["nodes"].push_back(
          {{"node", node.label}, {"operator", node.operation}, {"values", node.values}});
  }

  void addSteps(const std::string &profile) {
    std::map<std::pair<std::string, int>, StepTime> times;
    if (!profile.empty())
      times = readStepTimes(profile);
    for (const StepOfEntry &step : search.allSteps()) {
      ordered_json added = {{"entry", step.entry->name},
                            {"step", step.number},
                            {"text", step.entry->kernel_of(*step.part).text},
                            {"computes", step->computes}};
      if (source)
        addLines(step, added);
      if (auto time = times.find({step.entry->name, step.number}); time != times.end()) {
        added["seconds"] = time->second.seconds;
        added["times"] = time->second.times;
      }
      document["steps"].push_back(std::move(added));
    }
  }

  void addLines(const StepOfEntry &step, ordered_json &added) const {
    if (const source_lines *lines = source->linesOfStep(step))
      added["lines"] = {lines->first, lines->last};
    if (const mapped_kernel *kernel = source->kernelOf(step)) {
      added["kernel_lines"] = {kernel->lines.first, kernel->lines.last};
      added["kernel"] = kernel->name;
    }
  }

  void addTensors() {
    for (const TensorOfEntry &tensor : search.allTensors()) {
      const int number = int(document["tensors"].size());
      document["tensors"].push_back({{"tensor", tensor->name},
                                     {"entry", tensor.entry->name},
                                     {"arena", tensor->arena},
                                     {"offset", tensor->offset},
                                     {"bytes", tensor->bytes},
                                     {"first_step", tensor->first},
                                     {"last_step", tensor->last},
                                     {"used_by", tensor->used_by}});
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
    for (const planned_node *node : search.nodesOf(name))
      subject["nodes"].push_back(node - program.nodes.data());
    if (const planned_parameter *parameter = search.parameterOf(name))
      subject["parameter"] = fileNamesOf(*parameter);
    for (const StepOfEntry *step : search.stepsOf(whole))
      subject["steps"].push_back(step - search.allSteps().data());
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
    size_t before = 0; // steps
    for (const planned_entry &entry : program.entries) {
      size_t i = 0;
      ordered_json found = ordered_json::array();
      for (const EntryOperation *each : operations[entry.name])
        if (i < entry.steps.size() && entry.steps[i].computes == each->titles)
          found.push_back({each->index, before + i++});
      if (i == entry.steps.size())
        of.insert(of.end(), found.begin(), found.end());
      before += entry.steps.size();
    }
    document["steps_of_last_pass"] = of;
  }

  void addSource() {
    for (auto [name, file] :
         {std::pair("steps", source->fileOfSteps()), std::pair("kernels", source->fileOfKernels())})
      document["source"][name] = {{"file", file}, {"text", readText(file)}};
  }

  const ExploredPasses &passes;
  ordered_json &document;
  const plan &program;
  const NameSearch search;
  std::optional<MappedSource> source;
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

void addProgram(const std::string &folder, const plan &program, const std::string &profile,
                const ExploredPasses &passes, ordered_json &document) {
  ExploredProgram(folder, program, passes, document).addAll(profile);
}

} // namespace trainc::inspect
