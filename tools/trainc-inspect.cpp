// SPDX-License-Identifier: Apache-2.0
//
// trainc-inspect: shows the plans of an output folder, the log of a run and a table of runs, and
// makes a page of runs or of a compilation. All that it says of a program is from plan/plan.json
// and the map of the source beside it.
#include "compiler/standard_output.h"
#include "passes/planning/plan_text.h"
#include "runtime/byte_text.h"
#include "runtime/failure.h"
#include "runtime/files/output_file.h"
#include "runtime/files/run_files.h"
#include "runtime/plan/read_plan.h"
#include "tools/inspect/explorer.h"
#include "tools/inspect/loss_plot.h"
#include "tools/inspect/memory_picture.h"
#include "tools/inspect/planned_schedule.h"
#include "tools/inspect/report.h"
#include "tools/inspect/run_log.h"
#include "tools/inspect/run_table.h"
#include "tools/inspect/where.h"
#include "tools/simulate/svg.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace llvm;
using namespace trainc;

namespace {

cl::OptionCategory category("trainc-inspect options");
cl::opt<std::string> folder(cl::Positional, cl::desc("FOLDER"), cl::cat(category));
cl::opt<std::string>
    view(cl::Positional,
         cl::desc("[summary|memory|recompute|schedule|kernels|registers|steps|parameters|where|log|"
                  "table]"),
         cl::init("summary"), cl::cat(category));
cl::opt<std::string> subject(cl::Positional, cl::desc("[NAME]"), cl::cat(category));
cl::opt<std::string>
    svg("svg", cl::value_desc("FILE"), cl::cat(category),
        cl::desc("draw the activations arena over the steps of forward and backward; with the view "
                 "schedule what each stage does when"));

cl::opt<std::string>
    dumpIr("dump-ir", cl::value_desc("FOLDER"), cl::cat(category),
           cl::desc("with the view where and --explore: what trainc --dump-ir wrote "
                    "(default: the folder `ir` of the output, if it is there)"));
cl::opt<bool>
    all("all", cl::cat(category),
        cl::desc("with the view where: every operation of each dump, not the first four"));
cl::opt<std::string>
    csv("csv", cl::value_desc("FILE"), cl::ValueOptional, cl::cat(category),
        cl::desc("with the view log: write a row for each step, to FILE or else to stdout"));
cl::list<std::string> otherRuns(cl::Positional, cl::ZeroOrMore, cl::desc("[RUN...]"),
                                cl::cat(category));
cl::opt<std::string>
    html("html", cl::value_desc("FILE"), cl::cat(category),
         cl::desc("write one page for a browser about a run, about several in comparison, "
                  "or about an output of trainc alone"));
cl::opt<std::string> trainer("trainer", cl::value_desc("FOLDER"), cl::cat(category),
                             cl::desc("with --html: the output folder of trainc that trained the "
                                      "runs, for kernels, memory and the schedule of stages"));
cl::opt<std::string>
    explore("explore", cl::value_desc("FILE"), cl::cat(category),
            cl::desc("write one page for a browser that leads from the operations of the model "
                     "through each pass to kernels, source and memory"));
cl::opt<std::string>
    profile("profile", cl::value_desc("FILE"), cl::cat(category),
            cl::desc("with --html and --explore: what `trainer profile -o FILE` has measured"));

constexpr size_t kShown = 12;              // lines of a summary's lists
constexpr const char *kRunTable = "table"; // the view that stands after several runs

/// All of the command line.
std::vector<std::string> words() {
  std::vector<std::string> all = {folder};
  for (const cl::opt<std::string> *word : {&view, &subject})
    if (word->getNumOccurrences() > 0)
      all.push_back(*word);
  all.insert(all.end(), otherRuns.begin(), otherRuns.end());
  return all;
}

bool hasPlan() { return sys::fs::exists(plan_path(folder)); }

/// Tensors alive at the peak of an entry, largest first.
void printPeak(const planned_entry &entry) {
  std::vector<const planned_tensor *> alive;
  for (const planned_tensor &tensor : entry.tensors)
    if (tensor.is_at_peak)
      alive.push_back(&tensor);
  if (alive.empty())
    return;
  std::stable_sort(
      alive.begin(), alive.end(),
      [](const planned_tensor *a, const planned_tensor *b) { return a->bytes > b->bytes; });
  outs() << "\n" << titleOf(entry) << "\n";
  for (size_t i = 0; i < std::min(alive.size(), kShown); ++i)
    outs() << format("  %12s  steps %4d to %4d  ", byte_text(alive[i]->bytes).c_str(),
                     alive[i]->first, alive[i]->last)
           << alive[i]->name << "\n";
  if (alive.size() > kShown)
    outs() << "  and " << alive.size() - kShown << " more\n";
}

/// The first lines of a view.
void printBeginning(const std::string &text, const char *name) {
  SmallVector<StringRef> lines;
  StringRef(text).rtrim('\n').split(lines, '\n');
  for (StringRef line : ArrayRef(lines).take_front(kShown))
    outs() << line << "\n";
  if (lines.size() > kShown)
    outs() << "and " << lines.size() - kShown << " more; trainc-inspect " << folder << " " << name
           << "\n";
}

void printSummary() {
  plan program = read_plan(folder);
  outs() << arenasText(program.memory);
  for (const planned_entry &entry : program.entries)
    printPeak(entry);
  outs() << "\nentry functions\n";
  for (const planned_entry &entry : program.entries)
    outs() << "  " << entry.name << ": " << entry.steps.size() << " steps\n";
  outs() << "\n";
  printBeginning(kernelsText(program.entries), "kernels");
}

/// Of a step that is cut.
plan readCutPlan() {
  plan program = read_plan(folder);
  if (!program.stages)
    throw failure(exit_usage, folder + ": was compiled with --forward-only, so it has no step and "
                                       "no schedule\n  try: trainc --stages N without "
                                       "--forward-only");
  if (!program.stages->is_cut())
    throw failure(exit_usage, folder +
                                  ": its step is in one piece, so it has no schedule of "
                                  "stages\n  try: trainc --stages N, which cuts it; "
                                  "trainc-inspect " +
                                  folder + " steps, which lists it as it is");
  return program;
}

void printSchedule() {
  const simulate::StagePlan plan = simulate::stagePlanOf(folder, readCutPlan());
  outs() << stagesText(plan.stages());
}

void printRecompute() {
  const plan program = read_plan(folder);
  if (!program.recompute)
    throw failure(exit_usage, folder + ": was compiled with --forward-only, so nothing is kept or "
                                       "recomputed\n  try: trainc without --forward-only");
  outs() << recomputeText(*program.recompute);
}

void printParameters() {
  for (const std::string &line : read_plan(folder).parameter_table)
    outs() << line << "\n";
}

void write(const std::string &picture, const std::vector<std::string> &read) {
  check_output_path(svg, read, read_by_command, "--svg");
  replace_file(svg, picture);
}

void printWhere() {
  if (subject.empty())
    throw failure(exit_usage,
                  "trainc-inspect: the view where needs a name\n  try: trainc-inspect " + folder +
                      " where NAME, of a node, value, parameter or module");
  inspect::printWhere({folder, subject, dumpIr, all}, outs());
}

/// Of the terminal, where the shell says it.
int width() {
  constexpr int kDefault = 80, kMost = 1000;
  int columns = 0;
  const char *text = std::getenv("COLUMNS");
  return text && !StringRef(text).getAsInteger(10, columns) && columns > 0
             ? std::min(columns, kMost)
             : kDefault;
}

/// `--csv FILE` is an option without a value, and a name after it.
void printLog() {
  const inspect::RunLog log = inspect::readRunLog(folder);
  if (!log.damaged.empty())
    errs() << log.path << ": warning: " << inspect::damageText(log) << "\n";
  if (csv.getNumOccurrences() == 0) {
    outs() << inspect::lossPlot(log, width());
    return;
  }
  const std::string file = csv.empty() ? subject : csv;
  if (file.empty()) {
    outs() << inspect::csvOf(log);
    return;
  }
  check_output_path(file, {log.path}, read_by_command, "--csv");
  replace_file(file, inspect::csvOf(log));
}

void printRuns() {
  std::vector<std::string> runs = words();
  runs.pop_back(); // the view
  inspect::printRunTable(runs, outs(), errs());
}

void drawMemory() {
  const plan program = read_plan(folder);
  if (program.entries.empty())
    throw failure(exit_data, plan_path(folder) + ": has no entry function\n  try: trainc again");
  write(inspect::memoryPicture(program.entries.front()), {plan_path(folder)});
}

void drawSchedule() {
  const simulate::StagePlan plan = simulate::stagePlanOf(folder, readCutPlan());
  const inspect::PlannedSchedule planned = inspect::predictedSchedule(plan);
  write(simulate::schedulePicture(plan.schedule, planned.times, planned.title, planned.axis),
        {plan_path(folder)});
}

/// Whether the only word of the command line is what trainc wrote, and not a run.
bool isOutputAlone() {
  return view.getNumOccurrences() == 0 && hasPlan() && !sys::fs::exists(log_of(folder));
}

/// The words of the command line are runs, and none is a view.
void writeReport() {
  if (html.empty())
    throw failure(exit_usage, "option --html: no file is given\n  try: --html FILE");
  for (const cl::Option *option :
       {static_cast<cl::Option *>(&svg), static_cast<cl::Option *>(&csv),
        static_cast<cl::Option *>(&dumpIr), static_cast<cl::Option *>(&all)})
    if (option->getNumOccurrences() > 0)
      throw failure(exit_usage, "option --" + option->ArgStr.str() +
                                    ": a page has no use for it\n  try: it without --html");
  inspect::ReportSources sources{words(), trainer, profile};
  if (isOutputAlone())
    sources = {{}, folder, profile};
  std::vector<std::string> read;
  for (const std::string &run : sources.runs)
    read.insert(read.end(), {configuration_of(run), log_of(run)});
  if (!profile.empty())
    read.push_back(profile);
  if (!sources.trainer.empty())
    read.push_back(plan_path(sources.trainer));
  check_output_path(html, read, read_by_command, "--html");
  const inspect::Report report = inspect::reportOf(sources);
  for (const std::string &warning : report.warnings)
    errs() << warning << "\n";
  replace_file(html, report.page);
}

/// The one word of the command line is the folder.
void writeExplorer() {
  if (explore.empty())
    throw failure(exit_usage, "option --explore: no file is given\n  try: --explore FILE");
  for (const cl::Option *option :
       {static_cast<cl::Option *>(&svg), static_cast<cl::Option *>(&csv),
        static_cast<cl::Option *>(&trainer), static_cast<cl::Option *>(&all),
        static_cast<cl::Option *>(&html)})
    if (option->getNumOccurrences() > 0)
      throw failure(exit_usage, "option --" + option->ArgStr.str() +
                                    ": a page of a compilation has no use for it\n"
                                    "  try: it without --explore");
  if (view.getNumOccurrences() > 0)
    throw failure(exit_usage, "'" + view +
                                  "': a page of a compilation has no view\n"
                                  "  try: trainc-inspect " +
                                  folder + " --explore " + explore);
  const inspect::ExplorerSources sources{folder, dumpIr, profile};
  check_output_path(explore, sources.files(), read_by_command, "--explore");
  replace_file(explore, inspect::explorerPage(sources));
}

struct View {
  const char *name;
  void (*print)();
  void (*draw)(); // null: it has no picture
};

const View kViews[] = {
    {"summary", printSummary, drawMemory},
    {"memory", [] { outs() << memoryText(read_plan(folder)); }, drawMemory},
    {"recompute", printRecompute, nullptr},
    {"schedule", printSchedule, drawSchedule},
    {"kernels", [] { outs() << kernelsText(read_plan(folder).entries); }, nullptr},
    {"registers", [] { outs() << registersText(read_registers(folder)); }, nullptr},
    {"steps", [] { outs() << stepsText(read_plan(folder).entries); }, nullptr},
    {"parameters", printParameters, nullptr},
    {"where", printWhere, nullptr},
    {"log", printLog, nullptr},
    {kRunTable, printRuns, nullptr},
};

/// Null: there is none.
const View *viewCalled(const std::string &name) {
  const View *found = std::find_if(std::begin(kViews), std::end(kViews),
                                   [&](const View &each) { return name == each.name; });
  return found == std::end(kViews) ? nullptr : found;
}

/// `memory, schedule or steps`
std::string listed(bool (*isListed)(const View &)) {
  std::vector<std::string> names;
  for (const View &each : kViews)
    if (isListed(each))
      names.emplace_back(each.name);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

/// Throws where something is given that the view does not look at.
void checkOptionsOf(const std::string &name) {
  auto check = [&](const cl::Option &option, const char *what, bool isUsed, const char *view) {
    if (option.getNumOccurrences() > 0 && !isUsed)
      throw failure(exit_usage, std::string(what) + ": the view '" + name + "' has no use for it" +
                                    "\n  try: " + view);
  };
  check(dumpIr, "option --dump-ir", name == "where", "it with the view where, or --explore");
  check(all, "option --all", name == "where", "it with the view where");
  check(csv, "option --csv", name == "log", "it with the view log");
  check(trainer, "option --trainer", false, "it with --html");
  check(profile, "option --profile", false, "it with --html or --explore");
  const bool isOfRuns = name == kRunTable && words().back() == kRunTable;
  check(otherRuns, "RUN", isOfRuns, "several runs with --html, or with the view table after them");
  const bool isFile = name == "log" && csv.getNumOccurrences() > 0 && csv.empty();
  check(subject, "NAME", name == "where" || isFile || isOfRuns, "it with the view where");
}

void show() {
  if (explore.getNumOccurrences() > 0)
    return writeExplorer();
  if (html.getNumOccurrences() > 0)
    return writeReport();
  const View *chosen = viewCalled(view);
  if (!chosen && words().back() == kRunTable)
    chosen = viewCalled(kRunTable);
  if (!chosen)
    throw failure(exit_usage, "trainc-inspect: there is no view '" + view +
                                  "'\n  try: " + listed([](const View &) { return true; }) +
                                  "; several folders of runs with table or --html alone");
  checkOptionsOf(chosen->name);
  if (svg.getNumOccurrences() == 0)
    return chosen->print();
  if (svg.empty())
    throw failure(exit_usage, "option --svg: no file is given\n  try: --svg FILE");
  if (!chosen->draw)
    throw failure(exit_usage, std::string("option --svg: the view '") + chosen->name +
                                  "' has no picture\n  try: --svg with " +
                                  listed([](const View &each) { return each.draw != nullptr; }));
  chosen->draw();
}

constexpr const char *kOverview =
    "trainc-inspect explains the output folder of trainc.\n\n"
    "  trainc-inspect out            arenas, the tensors alive at the peak, entry functions, "
    "kernels\n"
    "  trainc-inspect out memory     every tensor, and what ranks hold; * is alive at the peak\n"
    "  trainc-inspect out recompute  what the backward pass recomputes, and what is kept for "
    "it\n"
    "  trainc-inspect out schedule   the stages of a step, what they keep and send, and when "
    "each is busy\n"
    "  trainc-inspect out kernels    every kernel with flops, bytes and launches\n"
    "  trainc-inspect out registers  what nvcc gave each kernel: registers, spills, shared memory\n"
    "  trainc-inspect out steps      the entry functions step by step\n"
    "  trainc-inspect out parameters    what is trained, what is constant, and why\n"
    "  trainc-inspect out where NAME    of a node, value, parameter or module of the model: its "
    "operations in IR,\n"
    "                                steps, lines of the source, and where its tensors lie how "
    "long\n"
    "  trainc-inspect out --svg memory.svg    a picture of the activations arena\n"
    "  trainc-inspect out schedule --svg schedule.svg    a picture of the schedule\n"
    "  trainc-inspect runs/first log    the losses of a run, from its log.jsonl, as wide as "
    "COLUMNS says\n"
    "  trainc-inspect runs/first log --csv losses.csv    a row for each step\n"
    "  trainc-inspect runs/* table   a row for each run: options that differ, losses, metrics, "
    "state\n"
    "  trainc-inspect runs/first runs/second --html report.html    a page for a browser, of one "
    "run "
    "or of several\n"
    "  trainc-inspect out --dump-ir ir --explore passes.html    a page that leads through the "
    "passes\n\n"
    "Exit status: 0; 2 the command line is wrong, or asks for what the program does not have; 3 a "
    "plan\nor log cannot be read, or is of another program; 5 the result cannot be written; 6 too "
    "little memory\n";

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  watchStandardOutput("trainc-inspect");
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv, kOverview, &errs()))
    return exit_usage;
  try {
    if (folder.empty())
      throw failure(exit_usage, "usage: trainc-inspect FOLDER [VIEW] [NAME] [--svg FILE]\n"
                                "       trainc-inspect RUN [RUN...] --html FILE\n"
                                "       trainc-inspect RUN [RUN...] table\n"
                                "trainc-inspect: no folder given\n"
                                "  try: trainc-inspect out, or trainc-inspect --help");
    show();
  } catch (const std::exception &error) {
    const failure problem = as_failure(error);
    outs().flush();
    errs() << problem.message << "\n";
    return problem.code;
  }
  return exit_success;
}
