// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/where.h"

#include "runtime/failure.h"
#include "runtime/options/option_values.h"
#include "runtime/plan/read_plan.h"
#include "tools/inspect/ir_dump.h"
#include "tools/inspect/mapped_source.h"
#include "tools/inspect/name_search.h"
#include "tools/inspect/program_identity.h"
#include "tools/inspect/table.h"
#include "tools/inspect/text_file.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <set>

namespace trainc::inspect {

using llvm::raw_ostream;

namespace {

constexpr size_t kShownOperations = 4;         // of each dump
constexpr const char *kYield = "kernel.yield"; // computes nothing
constexpr size_t kShownSteps = 6;              // that use a tensor

/// `3, 5, 77 and 12 more`
std::string listed(const std::vector<int> &numbers) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(numbers.size(), kShownSteps); ++i)
    shown.push_back(std::to_string(numbers[i]));
  return joined(shown, ", ") +
         (numbers.size() > kShownSteps
              ? " and " + std::to_string(numbers.size() - kShownSteps) + " more"
              : "");
}

class Where {
public:
  Where(const WhereQuestion &question, raw_ostream &stream)
      : question(question), stream(stream), program(read_plan(question.folder)), search(program) {}

  void print() {
    const Meaning meaning = search.find(question.name);
    if (meaning.isEmpty())
      refuse();
    for (const planned_node *node : meaning.unoperated)
      stream << "node '" << node->label << "' (" << node->operation
             << ") made no operation: it was computed when the model was read, or nothing needs "
                "it\n";
    if (meaning.names.size() == 1)
      printOne(meaning.names.front());
    else
      printSeveral(meaning.names);
  }

private:
  [[noreturn]] void refuse() const {
    const std::vector<std::string> near = search.nearest(question.name);
    throw failure(exit_usage, question.folder +
                                  ": no node, value, parameter or module is called '" +
                                  question.name + "'\n  try: " +
                                  (near.empty() ? "a name that trainc-inspect " + question.folder +
                                                      " steps shows, or one of the model's file"
                                                : joined(near, ", ")));
  }

  void printSeveral(const std::vector<std::string> &names) const {
    Table table;
    for (const std::string &name : names) {
      std::vector<std::string> labels, operations;
      for (const planned_node *node : search.nodesOf(name)) {
        labels.push_back(node->label);
        operations.push_back(node->operation);
      }
      const bool isParameter = search.parameterOf(name);
      table.add({name, isParameter ? "parameter" : joined(operations, ", "), joined(labels, ", "),
                 stepNumbers(name)});
    }
    table.print(stream, 0);
  }

  /// `forward_backward 3, 77; evaluate 3`
  std::string stepNumbers(const std::string &name) const {
    std::string text, entry;
    std::vector<int> numbers;
    auto finish = [&] {
      if (!numbers.empty())
        text += (text.empty() ? "" : "; ") + entry + " " + listed(numbers);
      numbers.clear();
    };
    for (const StepOfEntry *step : search.stepsOf(search.computedAs(name))) {
      if (step->entry->name != entry)
        finish();
      entry = step->entry->name;
      numbers.push_back(step->number);
    }
    finish();
    return text;
  }

  void printOne(const std::string &name) const {
    const std::string whole = search.computedAs(name);
    stream << name << "\n";
    printNames(name, whole);
    printDumps(name, whole);
    const MappedSource source(question.folder, program);
    printSteps(whole, source);
    printTensors(whole, source);
  }

  void printNames(const std::string &name, const std::string &whole) const {
    Table table;
    for (const planned_node *node : search.nodesOf(name))
      table.add({"node", node->label, node->operation, "makes " + joined(node->values, ", ")});
    if (const planned_parameter *parameter = search.parameterOf(name))
      table.add({"parameter", joined(fileNamesOf(*parameter), ", ")});
    if (whole != name)
      table.add({"part of", whole + ", which is one operation"});
    table.print(stream, 2);
  }

  void printSteps(const std::string &name, const MappedSource &source) const {
    const std::vector<const StepOfEntry *> steps = search.stepsOf(name);
    if (steps.empty() && search.isStored(name)) // a parameter or an input
      return;
    Table table;
    for (const StepOfEntry *step : steps)
      for (const std::string &title : step->part->computes)
        if (subjectOf(title) == name)
          table.add({step->entry->name, std::to_string(step->number), title,
                     step->entry->kernel_of(*step->part).text, source.lineOfStep(*step),
                     source.lineOfKernel(*step)});
    stream << "\nsteps\n";
    if (table.empty())
      stream << "  none: nothing is left to compute, or an operation that it is a part of does\n";
    table.print(stream, 2);
  }

  void printTensors(const std::string &name, const MappedSource &source) const {
    Table table;
    for (const TensorOfEntry &tensor : search.allTensors())
      if (llvm::is_contained(search.namesOf(tensor), name))
        table.add({tensor.entry->name, tensor->arena, "at " + std::to_string(tensor->offset),
                   std::to_string(tensor->bytes) + " bytes",
                   "steps " + std::to_string(tensor->first) + " to " + std::to_string(tensor->last),
                   "in " + listed(tensor->used_by), tensor->name, source.lineOfTensor(tensor)});
    stream << "\nmemory\n";
    if (table.empty())
      stream << "  none: its value does not leave the step that computes it\n";
    table.print(stream, 2);
  }

  std::vector<std::string> dumpFiles() const {
    const bool isNamed = !question.dumps.empty();
    std::vector<std::string> files = dumpsIn(isNamed ? question.dumps : question.folder + "/ir");
    if (files.empty() && isNamed)
      refuseDumps(question.dumps);
    checkSameProgram(identityOf(question.folder, program.program), identityOfDumps(files));
    return files;
  }

  struct Titled {
    int line;
    std::string operation, title;
  };

  /// Operations of a dump that one of the names is in; the first says what they compute.
  static std::vector<Titled> meantIn(const std::string &file, const std::set<std::string> &meant) {
    std::vector<Titled> found;
    for (const DumpedOperation &each : operationsOf(readText(file))) {
      auto name = std::find_if(each.names.begin(), each.names.end(),
                               [&](const LocatedName &in) { return meant.count(in.name) > 0; });
      if (name != each.names.end() && each.operation != kYield)
        found.push_back({each.line, each.operation, name->title()});
    }
    return found;
  }

  void printDumps(const std::string &name, const std::string &whole) const {
    const std::vector<std::string> files = dumpFiles();
    if (files.empty())
      return;
    Table table;
    std::set<std::string> meant = {name, whole}; // and what the file calls a parameter
    if (const planned_parameter *parameter = search.parameterOf(name))
      for (const std::string &other : fileNamesOf(*parameter))
        meant.insert(other);
    for (const std::string &file : files) {
      const std::vector<Titled> found = meantIn(file, meant);
      const size_t shown = question.all ? found.size() : std::min(found.size(), kShownOperations);
      for (size_t i = 0; i < shown; ++i)
        table.add({file + ":" + std::to_string(found[i].line), found[i].operation,
                   found[i].title == name ? "" : found[i].title});
      if (found.empty())
        table.add({file, "none"});
      if (shown < found.size())
        table.add({file, "and " + std::to_string(found.size() - shown) + " more: --all"});
    }
    stream << "\nIR\n";
    table.print(stream, 2);
  }

  const WhereQuestion &question;
  raw_ostream &stream;
  const plan program;
  const NameSearch search;
};

} // namespace

void printWhere(const WhereQuestion &question, raw_ostream &stream) {
  Where(question, stream).print();
}

} // namespace trainc::inspect
