// SPDX-License-Identifier: Apache-2.0
//
// From the command line of trainc to the recipe, its help and its documentation.
#include "compiler/options.h"
#include "compiler/exit_codes.h"
#include "compiler/option_rows.h"
#include "compiler/pipeline.h"
#include "dialects/train/loss_term.h"
#include "dialects/train/optimizer.h"
#include "passes/options/option_reader.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace llvm;

namespace trainc {

static const char kOverview[] =
    "trainc compiles a forward ONNX model into a training program.\n\n"
    "usage: trainc MODEL.onnx [options]\n\n"
    "  trainc model.onnx --dim batch=8 --loss cross_entropy --optimizer adamw -o out\n"
    "  mpirun -n 2 out/trainer train --data input_ids=ids.npy --data labels=labels.npy --steps "
    "1000\n\n"
    "The output folder receives `trainer` (the program; see `trainer --help`), "
    "`parameters.safetensors`\n"
    "(initial parameters), `export_template.onnx`, `source/` (the emitted C++, which builds by "
    "itself)\n"
    "and `plan/`, which trainc-inspect shows.\n\n";

static std::string exitCodeHelp() {
  std::string text = "\nExit codes:\n";
  for (const ExitCodeEntry &entry : kExitCodes)
    text += "  " + std::to_string(static_cast<int>(entry.code)) + "  " + entry.meaning + "\n";
  return text;
}

static void reportOption(Report &report, const Twine &option, const Twine &message,
                         const Twine &advice) {
  (void)report.error(ExitCode::usage, Subject::ofOption(option), message, advice);
}

MessageFormat messageFormatAmong(int argc, char **argv) {
  MessageFormat format = MessageFormat::text;
  for (int i = 1; i < argc; ++i) {
    StringRef word = StringRef(argv[i]).ltrim('-');
    if (!StringRef(argv[i]).starts_with("-") || !word.consume_front("message-format"))
      continue;
    StringRef value = word.consume_front("=") ? word : i + 1 < argc ? argv[i + 1] : "";
    format = parseMessageFormat(value).value_or(format);
  }
  return format;
}

static std::string helpPage(const std::string &which) {
  const Options defaults;
  std::string page = which.empty() || which == "all" ? kOverview : "";
  page += optionsOfTrainc().help(which, &defaults, ~0u, "trainc --help");
  if (which == "all")
    page += train::lossHelp() + train::optimizerHelp() + exitCodeHelp();
  return page;
}

CommandLine parseOptions(int argc, char **argv, Report &report) {
  Options options;
  command_line line = optionsOfTrainc().parse(argc - 1, argv + 1, &options);
  if (line.wants_help)
    return {options, helpPage(line.help_of)};
  const std::vector<std::string> &models = line.words;
  if (models.size() > 1 && line.problems.empty()) // else the value of what is not an option
    (void)report.error(
        ExitCode::usage, Subject::ofProgram("trainc"),
        Twine(models.size()) + " models given, " + quotedList(models) + "; expected one",
        is_contained(models, "minimal") ? "--library=minimal, in one word"
                                        : "one trainc for each model; a value behind its option");
  for (const option_problem &problem : line.problems)
    reportOption(report, problem.option, problem.message, problem.advice);
  options.given = std::move(line.given);
  if (!models.empty())
    options.model = models.front();
  const bool isUnknown =
      any_of(line.problems, [](const option_problem &problem) { return problem.is_unknown; });
  if (!report.empty() && !isUnknown)
    (void)options.recipe(report); // what is wrong besides
  if (!report.empty())
    return {};
  return {options, "", line.wants_version};
}

/// Checks values as the passes do.
static OptionReader readerInto(Report &report) {
  return {kOfCommand,
          [&report](const OptionProblem &problem) {
            reportOption(report, "--" + problem.option, problem.message, problem.advice);
          },
          report.empty()};
}

std::optional<Recipe> Options::recipe(Report &report) const {
  Recipe recipe = asked;
  recipe.trains = !forwardOnly;
  recipe.predicts = !noPredictions;
  recipe.epilogues = !noEpilogues;
  const std::string chunk = !rowChunk.empty()        ? rowChunk
                            : asked.target == "cuda" ? "1GiB"
                                                     : "64MiB";
  recipe.rowChunk = readerInto(report).bytesOrZero("row-chunk", chunk, "64MiB");
  recipe.optimizer = optimizer + (stateType == "f32" ? "" : "+" + stateType) +
                     (ema ? train::kWithAverage.str() : "");
  recipe.choosesBatchNorm = given.count("batch-norm") > 0;
  if (recipe.trains && recipe.losses.empty())
    recipe.losses.push_back(train::kDefaultLoss.str());
  completeAdapters(recipe, report);
  if (checkStopAfter(recipe, report))
    for (const option_problem &problem :
         optionsOfTrainc().refused(this, [&](const std::string &option, const std::string &) {
           return given.count(option) > 0;
         }))
      reportOption(report, problem.option, problem.message, problem.advice);
  for (StringRef printing : {"list-operators", "print-documentation"})
    if (given.count(printing.str()) && !model.empty()) {
      (void)report.error(ExitCode::usage, model, "is not read with --" + printing,
                         "the command without it");
      break;
    }
  return report.empty() ? std::optional(recipe) : std::nullopt;
}

/// PATTERN[,rank=R][,alpha=A]; a pattern may have commas and equals signs of its own.
static AdapterChoice parseAdapters(StringRef text, StringRef &rank, StringRef &alpha) {
  for (;;) {
    auto [front, setting] = text.rsplit(',');
    auto [name, value] = setting.split('=');
    if (name != "rank" && name != "alpha")
      return {text.str()};
    (name == "rank" ? rank : alpha) = value;
    text = front;
  }
}

void Options::completeAdapters(Recipe &recipe, Report &report) const {
  auto isNumber = [](StringRef text, double &number) {
    return !text.getAsDouble(number) && std::isfinite(number);
  };
  for (const std::string &text : lora) {
    StringRef rank = loraRank, alpha = loraAlpha;
    AdapterChoice choice = parseAdapters(text, rank, alpha);
    if (auto [front, setting] = StringRef(choice.pattern).rsplit(',');
        !setting.empty() && setting.split('=').first.size() < setting.size() &&
        all_of(setting.split('=').first, isAlpha))
      reportOption(report, "--lora", "has no setting '" + setting.split('=').first + "'",
                   "rank=R or alpha=A");
    if (choice.pattern.empty())
      reportOption(report, "--lora", "expects PATTERN[,rank=R][,alpha=A], found '" + text + "'",
                   "--lora '.*attn.*,rank=16'");
    if (rank.getAsInteger(10, choice.rank) || choice.rank < 1)
      reportOption(report, "--lora-rank", "expects an integer from 1, found '" + rank + "'",
                   "--lora-rank 8");
    if (!isNumber(alpha, choice.alpha) || choice.alpha <= 0)
      reportOption(report, "--lora-alpha", "expects a number above 0, found '" + alpha + "'",
                   "--lora-alpha 16");
    recipe.adapters.push_back(std::move(choice));
  }
  if (!isNumber(loraDropout, recipe.adapterDropout) ||
      !(recipe.adapterDropout >= 0 && recipe.adapterDropout < 1))
    reportOption(report, "--lora-dropout",
                 "expects a number from 0 to below 1, found '" + loraDropout + "'",
                 "--lora-dropout 0.05");
}

/// --stop-after names a step, and one after what the other options need.
bool Options::checkStopAfter(const Recipe &recipe, Report &report) const {
  std::vector<std::string> steps = pipelinePasses(recipe);
  steps.insert(steps.begin(), "import");
  steps.push_back("emit");
  auto last = find(steps, stopAfter);
  if (!stopAfter.empty() && last == steps.end())
    reportOption(report, "--stop-after", "no step is called '" + stopAfter + "'",
                 "--stop-after with one of " + join(steps, ", "));
  else if (!gradientGraph.empty() && last < find(steps, kGradientGraphBehind))
    reportOption(report, "--write-gradient-graph", "has no effect with --stop-after " + stopAfter,
                 Twine("--stop-after ") + kGradientGraphBehind + ", or a later step");
  return stopAfter.empty() || last != steps.end();
}

std::optional<RecomputeOptions> Options::recomputeOptions(Report &report) const {
  RecomputeOptions found{recompute, parseBytes(memoryBudget).value_or(0),
                         join(recomputePatterns, "|")};
  if (recomputePatterns.size() > 1) // may be too large together
    readerInto(report).pattern("recompute-pattern", found.pattern);
  return report.empty() ? std::optional(found) : std::nullopt;
}

void Options::acceptFindings(Report &report) const {
  for (const FindingEntry &entry : findingEntries())
    if (is_contained(accepted, entry.name))
      report.accept(entry.finding);
}

std::optional<rank_layout> Options::runLayout(Report &report) const {
  auto complain = [&](const Twine &message, const Twine &advice) {
    reportOption(report, "--run-with", message, advice);
  };
  if (updatesInBackward && (startedAs.replicas > 1 || startedAs.micro_batches > 1))
    complain("with --update-in-backward: one rank takes one micro-batch", "one of the two");
  if (shardsGradients() && startedAs.shared == sharing::state)
    complain("shard=optimizer is of programs that are not compiled with --shard gradients",
             "the command without shard=optimizer");
  return given.count("run-with") && report.empty() ? std::optional(startedAs) : std::nullopt;
}

std::optional<StageOptions> Options::stageOptions(Report &report) const {
  OptionReader reader = readerInto(report);
  StageTexts texts{stages, chunksPerStage, schedule, microBatches, cuts};
  if (schedule != "interleaved" && !given.count("chunks-per-stage"))
    texts.chunksPerStage.clear(); // the default is that of interleaved
  StageOptions found = readStages(texts, reader);
  found.memoryLimit = parseBytes(limitMemory).value_or(0);
  found.target = asked.target;
  if (reader.good() && found.stages > 1)
    checkStages(found, reader);
  return reader.good() ? std::optional(found) : std::nullopt;
}

static std::string escapeMarkdown(StringRef text) { return join(split(text, '|'), "\\|"); }

std::string optionsDocumentation() {
  std::string text = "# Options of trainc\n\n"
                     "Written by `trainc --print-documentation` from `compiler/option_rows.cpp`.\n";
  const Options defaults;
  for (const option_group &group : optionsOfTrainc().groups()) {
    text += "\n## " + group.title + "\n\n`trainc --help " + group.name +
            "`\n\n| option | meaning |\n|---|---|\n";
    for (const option_row &row : optionsOfTrainc().rows()) {
      if (row.group != group.name)
        continue;
      std::string option = with_dashes(row.name);
      if (!row.is_flag)
        option += row.may_lack_value ? "[=" + row.placeholder + "]" : " " + row.placeholder;
      const std::string value = joined(row.texts(&defaults));
      text += "| `" + escapeMarkdown(option) + "` | " + escapeMarkdown(row.help);
      if (!row.choices.empty() && row.choices != row.placeholder)
        text += ": " + escapeMarkdown(row.choices);
      if (!row.is_flag && !value.empty())
        text += " (default `" + value + "`)";
      text += " |\n";
    }
  }
  text += "\n## Losses\n\n" + train::lossDocumentation();
  text += "\n## Optimizers\n\n" + train::optimizerDocumentation();
  text += "\n## Findings\n\nMessages about what a file does not tell, and about the host, end with "
          "a name in brackets. "
          "`--accept NAME` takes the file as it stands.\n\n| name | severity | meaning "
          "|\n|---|---|---|\n";
  for (const FindingEntry &entry : findingEntries())
    text +=
        std::string("| `") + entry.name + "` | " + entry.severity + " | " + entry.meaning + " |\n";
  text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCodeEntry &entry : kExitCodes)
    text += "| " + std::to_string(static_cast<int>(entry.code)) + " | " + entry.meaning + " |\n";
  return text;
}

} // namespace trainc
