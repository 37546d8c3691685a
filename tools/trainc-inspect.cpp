// SPDX-License-Identifier: Apache-2.0
//
// trainc-inspect: shows the plans of an output folder, the log of a run and a table of runs, and
// makes a page of runs or of a compilation. All that it says of a program is from plan/plan.json
// and the map of the source beside it.
#include "compiler/standard_output.h"
#include "passes/planning/plan_text.h"
#include "runtime/byte_text.h"
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
#include "tools/run_tool.h"
#include "tools/simulate/svg.h"
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
using namespace trainc::tools;

namespace {

struct InspectOptions : ToolOptions {
  std::string svg, dumpIr, html, trainer, explore, profile;
  std::string csv; // `-`: to the file that is the next word, or else to the standard output
  bool all = false;

  std::string folder() const { return word(0); }
  std::string view() const { return word(1, "summary"); }
  std::string subject() const { return word(2); }
};

std::vector<option_row> inspectRows() {
  using O = InspectOptions;
  option_row csv = toolOption("csv", &O::csv, "FILE",
                              "with the view log: write a row for each step, to FILE or else to "
                              "the standard output")
                       .optional_value();
  csv.choices = "-";
  return {toolOption("svg", &O::svg, "FILE",
                     "draw the activations arena over the steps of forward and backward; with the "
                     "view schedule what each stage does when"),
          toolOption("dump-ir", &O::dumpIr, "FOLDER",
                     "with the view where and --explore: what trainc --dump-ir wrote (default: the "
                     "folder `ir` of the output, if it is there)"),
          toolOption("all", &O::all, "",
                     "with the view where: every operation of each dump, not the first four"),
          csv,
          toolOption("html", &O::html, "FILE",
                     "write one page for a browser about a run, about several in comparison, or "
                     "about an output of trainc alone"),
          toolOption("trainer", &O::trainer, "FOLDER",
                     "with --html: the output folder of trainc that trained the runs, for kernels, "
                     "memory and the schedule of stages"),
          toolOption("explore", &O::explore, "FILE",
                     "write one page for a browser that leads from the operations of the model "
                     "through each pass to kernels, source and memory"),
          toolOption("profile", &O::profile, "FILE",
                     "with --html and --explore: what `trainer profile -o FILE` has measured")};
}

/// Throws where one of the options is given.
void refuse(const InspectOptions &options, const std::string &names, const std::string &who,
            const char *advice) {
  for (const std::string &option : options.given)
    if (is_choice(names, option))
      throw failure(exit_usage,
                    "option --" + option + ": " + who + " has no use for it\n  try: " + advice);
}

constexpr size_t kShown = 12;              // lines of a summary's lists
constexpr const char *kRunTable = "table"; // the view that stands after several runs

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
void printBeginning(const std::string &text, const std::string &folder, const char *name) {
  SmallVector<StringRef> lines;
  StringRef(text).rtrim('\n').split(lines, '\n');
  for (StringRef line : ArrayRef(lines).take_front(kShown))
    outs() << line << "\n";
  if (lines.size() > kShown)
    outs() << "and " << lines.size() - kShown << " more; trainc-inspect " << folder << " " << name
           << "\n";
}

void printSummary(const InspectOptions &options) {
  plan program = read_plan(options.folder());
  outs() << arenasText(program.memory);
  for (const planned_entry &entry : program.entries)
    printPeak(entry);
  outs() << "\nentry functions\n";
  for (const planned_entry &entry : program.entries)
    outs() << "  " << entry.name << ": " << entry.steps.size() << " steps\n";
  outs() << "\n";
  printBeginning(kernelsText(program.entries), options.folder(), "kernels");
}

/// Of a step that is cut.
simulate::StagePlan readCutPlan(const InspectOptions &options) {
  const std::string folder = options.folder();
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
  return simulate::stagePlanOf(folder, program);
}

void printSchedule(const InspectOptions &options) {
  outs() << stagesText(readCutPlan(options).stages());
}

void printRecompute(const InspectOptions &options) {
  const plan program = read_plan(options.folder());
  if (!program.recompute)
    throw failure(exit_usage, options.folder() +
                                  ": was compiled with --forward-only, so nothing is kept or "
                                  "recomputed\n  try: trainc without --forward-only");
  outs() << recomputeText(*program.recompute);
}

void printParameters(const InspectOptions &options) {
  for (const std::string &line : read_plan(options.folder()).parameter_table)
    outs() << line << "\n";
}

void write(const std::string &picture, const InspectOptions &options) {
  check_output_path(options.svg, {plan_path(options.folder())}, read_by_command, "--svg");
  replace_file(options.svg, picture);
}

void printWhere(const InspectOptions &options) {
  if (options.subject().empty())
    throw failure(exit_usage,
                  "trainc-inspect: the view where needs a name\n  try: trainc-inspect " +
                      options.folder() + " where NAME, of a node, value, parameter or module");
  inspect::printWhere({options.folder(), options.subject(), options.dumpIr, options.all}, outs());
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

void printLog(const InspectOptions &options) {
  const inspect::RunLog log = inspect::readRunLog(options.folder());
  if (!log.damaged.empty())
    errs() << log.path << ": warning: " << inspect::damageText(log) << "\n";
  const std::string file = options.csv == "-" ? options.subject() : options.csv;
  if (!options.has("csv")) {
    outs() << inspect::lossPlot(log, width());
  } else if (file.empty()) {
    outs() << inspect::csvOf(log);
  } else {
    check_output_path(file, {log.path}, read_by_command, "--csv");
    replace_file(file, inspect::csvOf(log));
  }
}

void printRuns(const InspectOptions &options) {
  std::vector<std::string> runs = options.words;
  runs.pop_back(); // the view
  inspect::printRunTable(runs, outs(), errs());
}

void drawMemory(const InspectOptions &options) {
  const plan program = read_plan(options.folder());
  if (program.entries.empty())
    throw failure(exit_data,
                  plan_path(options.folder()) + ": has no entry function\n  try: trainc again");
  write(inspect::memoryPicture(program.entries.front()), options);
}

void drawSchedule(const InspectOptions &options) {
  const simulate::StagePlan plan = readCutPlan(options);
  const inspect::PlannedSchedule planned = inspect::predictedSchedule(plan);
  write(simulate::schedulePicture(plan.schedule, planned.times, planned.title, planned.axis),
        options);
}

/// The words of the command line are runs, and none is a view.
void writeReport(const InspectOptions &options) {
  refuse(options, "svg|csv|dump-ir|all", "a page", "it without --html");
  const std::string &profile = options.profile;
  inspect::ReportSources sources{options.words, options.trainer, profile};
  if (options.words.size() == 1 && sys::fs::exists(plan_path(options.folder())) &&
      !sys::fs::exists(log_of(options.folder()))) // what trainc wrote, and not a run
    sources = {{}, options.folder(), profile};
  std::vector<std::string> read;
  for (const std::string &run : sources.runs)
    read.insert(read.end(), {configuration_of(run), log_of(run)});
  if (!profile.empty())
    read.push_back(profile);
  if (!sources.trainer.empty())
    read.push_back(plan_path(sources.trainer));
  check_output_path(options.html, read, read_by_command, "--html");
  const inspect::Report report = inspect::reportOf(sources);
  for (const std::string &warning : report.warnings)
    errs() << warning << "\n";
  replace_file(options.html, report.page);
}

/// The one word of the command line is the folder.
void writeExplorer(const InspectOptions &options) {
  refuse(options, "svg|csv|trainer|all|html", "a page of a compilation", "it without --explore");
  if (options.words.size() > 1)
    throw failure(exit_usage, "'" + options.view() +
                                  "': a page of a compilation has no view\n"
                                  "  try: trainc-inspect " +
                                  options.folder() + " --explore " + options.explore);
  const inspect::ExplorerSources sources{options.folder(), options.dumpIr, options.profile};
  check_output_path(options.explore, sources.files(), read_by_command, "--explore");
  replace_file(options.explore, inspect::explorerPage(sources));
}

struct View {
  const char *name;
  void (*print)(const InspectOptions &);
  void (*draw)(const InspectOptions &); // null: it has no picture
};

const View kViews[] = {
    {"summary", printSummary, drawMemory},
    {"memory", [](const InspectOptions &o) { outs() << memoryText(read_plan(o.folder())); },
     drawMemory},
    {"recompute", printRecompute, nullptr},
    {"schedule", printSchedule, drawSchedule},
    {"kernels",
     [](const InspectOptions &o) { outs() << kernelsText(read_plan(o.folder()).entries); },
     nullptr},
    {"registers",
     [](const InspectOptions &o) { outs() << registersText(read_registers(o.folder())); }, nullptr},
    {"steps", [](const InspectOptions &o) { outs() << stepsText(read_plan(o.folder()).entries); },
     nullptr},
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

/// `memory|schedule|steps`
std::string namesOfViews(bool areDrawn) {
  std::string text;
  for (const View &each : kViews)
    if (!areDrawn || each.draw)
      text += (text.empty() ? "" : "|") + std::string(each.name);
  return text;
}

/// Throws where something is given that the view does not look at.
void checkOptionsOf(const std::string &name, const InspectOptions &options) {
  const std::string view = "the view '" + name + "'";
  if (name != "where") {
    refuse(options, "dump-ir", view, "it with the view where, or --explore");
    refuse(options, "all", view, "it with the view where");
  }
  if (name != "log")
    refuse(options, "csv", view, "it with the view log");
  refuse(options, "trainer", view, "it with --html");
  refuse(options, "profile", view, "it with --html or --explore");
  const size_t words = options.words.size();
  if (words < 3 || (name == kRunTable && options.words.back() == kRunTable))
    return;
  if (words > 3)
    throw failure(exit_usage, "RUN: " + view +
                                  " has no use for it\n  try: several runs with --html, or with "
                                  "the view table after them");
  if (name != "where" && (name != "log" || options.csv != "-"))
    throw failure(exit_usage,
                  "NAME: " + view + " has no use for it\n  try: it with the view where");
}

int inspectFolder(const InspectOptions &options) {
  if (options.has("explore"))
    return writeExplorer(options), exit_success;
  if (options.has("html"))
    return writeReport(options), exit_success;
  const View *chosen = viewCalled(options.view());
  if (!chosen && options.words.back() == kRunTable)
    chosen = viewCalled(kRunTable);
  if (!chosen)
    throw failure(exit_usage, "trainc-inspect: there is no view '" + options.view() +
                                  "'\n  try: " + namesOfViews(/*areDrawn=*/false) +
                                  "; several folders of runs with table or --html alone");
  checkOptionsOf(chosen->name, options);
  if (options.has("svg") && !chosen->draw)
    throw failure(exit_usage, std::string("option --svg: the view '") + chosen->name +
                                  "' has no picture\n  try: --svg with " +
                                  namesOfViews(/*areDrawn=*/true));
  (options.has("svg") ? chosen->draw : chosen->print)(options);
  return exit_success;
}

constexpr char kOverview[] = R"(
       trainc-inspect RUN [RUN...] --html FILE
       trainc-inspect RUN [RUN...] table

trainc-inspect explains the output folder of trainc.

  trainc-inspect out            arenas, the tensors alive at the peak, entry functions, kernels
  trainc-inspect out memory     every tensor, and what ranks hold; * is alive at the peak
  trainc-inspect out recompute  what the backward pass recomputes, and what is kept for it
  trainc-inspect out schedule   the stages of a step, what they keep and send, and when each is busy
  trainc-inspect out kernels    every kernel with flops, bytes and launches
  trainc-inspect out registers  what nvcc gave each kernel: registers, spills, shared memory
  trainc-inspect out steps      the entry functions step by step
  trainc-inspect out parameters    what is trained, what is constant, and why
  trainc-inspect out where NAME    of a node, value, parameter or module of the model: its
                                   operations in IR, steps, lines of the source, and where its
                                   tensors lie how long
  trainc-inspect out --svg memory.svg    a picture of the activations arena
  trainc-inspect out schedule --svg schedule.svg    a picture of the schedule
  trainc-inspect runs/first log    the losses of a run, from its log.jsonl, as wide as COLUMNS says
  trainc-inspect runs/first log --csv losses.csv    a row for each step
  trainc-inspect runs/* table   a row for each run: options that differ, losses, metrics, state
  trainc-inspect runs/first runs/second --html report.html    a page for a browser, of one run or
                                                              of several
  trainc-inspect out --dump-ir ir --explore passes.html    a page that leads through the passes

Exit status: 0; 2 the command line is wrong, or asks for what the program does not have; 3 a plan
or log cannot be read, or is of another program; 5 the result cannot be written; 6 too little memory
)";

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  watchStandardOutput("trainc-inspect");
  return runTool(argc, argv,
                 {"trainc-inspect",
                  "usage: trainc-inspect FOLDER [" + namesOfViews(/*areDrawn=*/false) +
                      "] [NAME] [options]" + kOverview,
                  inspectRows(), "folder", SIZE_MAX},
                 inspectFolder);
}
