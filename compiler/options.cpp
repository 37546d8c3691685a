// SPDX-License-Identifier: Apache-2.0
//
// The command line of trainc, made from options.def on LLVM's command-line library.
#include "compiler/options.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/exit_codes.h"
#include "compiler/pipeline.h"
#include "dialects/train/loss_term.h"
#include "dialects/train/optimizer.h"
#include "passes/options/option_reader.h"
#include "runtime/files/conversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>

using namespace llvm;

namespace trainc {

static const char kOverview[] =
    "trainc compiles a forward ONNX model into a training program.\n\n"
    "  trainc model.onnx --dim batch=8 --loss cross_entropy --optimizer adamw -o out\n"
    "  mpirun -n 2 out/trainer train --data input_ids=ids.npy --data labels=labels.npy --steps "
    "1000\n\n"
    "The output folder receives `trainer` (the program; see `trainer --help`), "
    "`parameters.safetensors`\n"
    "(initial parameters), `export_template.onnx`, `source/` (the emitted C++, which builds by "
    "itself)\n"
    "and `plan/` (memory plan, recompute, kernels, parameters as text).\n";

static std::string exitCodeHelp() {
  std::string text = "\nExit codes:\n";
  for (const ExitCodeEntry &entry : kExitCodes)
    text += "  " + std::to_string(static_cast<int>(entry.code)) + "  " + entry.meaning + "\n";
  return text;
}

/// What the value of an option is, in help and documentation; of those that choose from a registry
/// its names.
static std::string placeholderOf(StringRef option, StringRef value) {
  std::vector<std::string> names;
  if (option == "optimizer")
    names = train::listOptimizers();
  return names.empty() ? value.str() : join(names, "|");
}

static std::string dashed(StringRef name) { return (name.size() == 1 ? "-" : "--") + name.str(); }

namespace {
struct Parser {
  cl::OptionCategory category{"trainc options"};
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"), cl::cat(category)};
#define SECTION(title)
#define TEXT(member, name, value, default_, help)                                                  \
  const std::string member##Value = placeholderOf(name, value);                                    \
  cl::opt<std::string> member{name, cl::value_desc(member##Value), cl::init(default_),             \
                              cl::desc(help), cl::cat(category)};
#define LIST(member, name, value, help)                                                            \
  cl::list<std::string> member{name, cl::value_desc(value), cl::desc(help), cl::cat(category)};
#define FLAG(member, name, help) cl::opt<bool> member{name, cl::desc(help), cl::cat(category)};
#define CHOICE(member, name, value, help)                                                          \
  cl::opt<std::string> member{name, cl::ValueOptional, cl::value_desc(value), cl::desc(help),      \
                              cl::cat(category)};
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
#undef CHOICE
};
} // namespace

// LLVM's shared library registers some hundred options of its own, `--stop-after` among them.
static void forgetLibraryOptions() {
  std::vector<cl::Option *> options;
  for (auto &entry : cl::getRegisteredOptions())
    if (!entry.getKey().starts_with("help") && entry.getKey() != "h" && entry.getKey() != "version")
      options.push_back(entry.getValue());
  for (cl::Option *option : options)
    option->removeArgument();
}

static std::string nearestOption(StringRef name) {
  return dashed(nearestOf(to_vector(cl::getRegisteredOptions().keys()), name, "help"));
}

namespace {
/// A command line before LLVM's parser, which would take `--optimiser` for an `-o`, `--dump-ir
/// --check` for a folder, and the last of two values for the only one.
class WordCheck {
public:
  WordCheck(ArrayRef<char *> words, Report &report)
      : words(words.begin(), words.end()), report(report) {}

  bool run() {
    bool areModels = false; // after `--`
    for (size_t i = 1; i < words.size(); ++i)
      if (areModels || !words[i].starts_with("-") || words[i] == "-")
        models.push_back(words[i].str());
      else if (words[i] == "--")
        areModels = true;
      else
        i += checkOption(words[i], i + 1 < words.size() ? words[i + 1] : StringRef()) ? 1 : 0;
    if (models.size() > 1 && report.empty()) // else the value of what is not an option
      (void)report.error(
          ExitCode::usage, Subject::ofProgram("trainc"),
          Twine(models.size()) + " models given, " + quotedList(models) + "; expected one",
          is_contained(models, "minimal") ? "--library=minimal, in one word"
                                          : "one trainc for each model; a value behind its option");
    return report.empty();
  }

private:
  /// Whether the next word is the option's value.
  bool checkOption(StringRef word, StringRef next) {
    auto [name, value] = word.ltrim('-').split('=');
    auto complain = [&](const Twine &message, const Twine &advice) {
      (void)report.error(ExitCode::usage, Subject::ofOption(word.split('=').first), message,
                         advice);
    };
    auto found = known.find(name);
    if (found == known.end() && word == "-h")
      return false; // the parser's, as --help
    if (found == known.end()) {
      complain("unknown option", nearestOption(name));
      return false;
    }
    bool hasValue = word.contains('=');
    if (found->second->getValueExpectedFlag() != cl::ValueRequired) {
      if (hasValue && found->second->ValueStr.empty()) // one that may have a value names it
        complain("takes no value, found '" + value + "'", dashed(name));
      return false;
    }
    if (!hasValue && (next.data() == nullptr || isOption(next))) {
      complain(next.data() ? "has no value: the option '" + next + "' follows" : "has no value",
               dashed(name) + "=" + found->second->ValueStr);
      return false;
    }
    if ((hasValue ? value : next).empty())
      complain("its value is empty", "the command without it");
    bool isList = found->second->getNumOccurrencesFlag() == cl::ZeroOrMore;
    if (!given.insert(name).second && !isList)
      complain("is given twice", "one of the two");
    return !hasValue;
  }

  bool isOption(StringRef word) const {
    return word.starts_with("-") && known.contains(word.ltrim('-').split('=').first);
  }

  const SmallVector<StringRef> words;
  StringMap<cl::Option *> &known = cl::getRegisteredOptions();
  Report &report;
  std::vector<std::string> models;
  llvm::StringSet<> given;
};
} // namespace

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

std::optional<Options> parseOptions(int argc, char **argv, Report &report) {
  forgetLibraryOptions();
  static Parser parser;
  if (!WordCheck(ArrayRef(argv, argc), report).run())
    return std::nullopt;
  cl::HideUnrelatedOptions(parser.category);
  static const std::string exitCodes = exitCodeHelp();
  static const cl::extrahelp moreHelp(exitCodes);
  static const std::string losses = train::lossHelp();
  static const cl::extrahelp lossesHelp(losses);
  static const std::string optimizers = train::optimizerHelp();
  static const cl::extrahelp optimizersHelp(optimizers);
  std::string complaint;
  raw_string_ostream stream(complaint);
  if (!cl::ParseCommandLineOptions(argc, argv, kOverview, &stream)) {
    StringRef text = stream.str();
    text.consume_front(StringRef(argv[0]).rsplit('/').second);
    text.consume_front(argv[0]);
    text.consume_front(": ");
    (void)report.error(ExitCode::usage, Subject::ofProgram("trainc"), text.trim(), "trainc --help");
    return std::nullopt;
  }
  Options options;
  options.model = parser.model;
  for (auto &entry : cl::getRegisteredOptions())
    if (entry.getValue()->getNumOccurrences() > 0)
      options.given.push_back(entry.getKey().str());
  llvm::sort(options.given);
#define SECTION(title)
#define TEXT(member, name, value, default_, help) options.member = parser.member;
#define LIST(member, name, value, help)                                                            \
  options.member.assign(parser.member.begin(), parser.member.end());
#define FLAG(member, name, help) options.member = parser.member;
#define CHOICE(member, name, value, help)                                                          \
  options.member = parser.member;                                                                  \
  if (parser.member.getNumOccurrences() > 0 && options.member.empty())                             \
    options.member = StringRef(value).split('|').first;
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
#undef CHOICE
  return options;
}

OptionReader Options::readerInto(Report &report) {
  return {kOfCommand,
          [&report](const OptionProblem &problem) {
            (void)report.error(ExitCode::usage, Subject::ofOption("--" + problem.option),
                               problem.message, problem.advice);
          },
          report.empty()};
}

std::optional<Recipe> Options::recipe(Report &report) const {
  Recipe recipe;
  auto complain = [&](const Twine &option, const Twine &message, const Twine &advice) {
    (void)report.error(ExitCode::usage, Subject::ofOption(option), message, advice);
  };
  for (const std::string &text : dimensions) {
    auto [name, size] = StringRef(text).rsplit('='); // names may hold equals signs
    int64_t number = 0;
    if (name.empty() || size.getAsInteger(10, number) || number < 0)
      complain("--dim", "expects NAME=SIZE with a size from 0, found '" + text + "'",
               "--dim batch=8");
    else if (!recipe.dimensions.emplace(name.str(), number).second)
      complain("--dim", "gives '" + name + "' twice", "one --dim for each dimension");
  }
  for (const std::string &text : batchAxes) {
    auto [name, axis] = StringRef(text).rsplit('=');
    int64_t number = 0;
    if (name.empty() || axis.getAsInteger(10, number) || number < 0)
      complain("--batch-axis", "expects NAME=AXIS with an axis from 0, found '" + text + "'",
               "--batch-axis x=1");
    else if (!recipe.batchAxes.emplace(name.str(), number).second)
      complain("--batch-axis", "gives '" + name + "' twice", "one --batch-axis for each name");
  }
  if (!batch.empty() && (StringRef(batch).getAsInteger(10, recipe.batch) || recipe.batch <= 0))
    complain("--batch", "expects a positive number, found '" + batch + "'", "--batch 8");
  for (const std::string &text : buffers) {
    auto [name, outputName] = StringRef(text).split('=');
    if (name.empty() || outputName.empty())
      complain("--buffer", "expects NAME=OUTPUT, found '" + text + "'",
               "--buffer running_mean=new_running_mean");
    else if (!recipe.buffers.emplace(name.str(), outputName.str()).second)
      complain("--buffer", "gives '" + name + "' twice", "one --buffer for each initializer");
  }
  std::set<StringRef> groupNames;
  for (const std::string &text : groups) {
    auto [name, pattern] = StringRef(text).split('=');
    const char *form = "^[a-z][a-z0-9]*(-[a-z0-9]+)*$";
    if (pattern.empty() || !Regex(form).match(name))
      complain("--group",
               "expects NAME=PATTERN, the name of small letters, digits and dashes; found '" +
                   text + "'",
               "--group 'norms=.*ln_.*'");
    else if (name == "ungrouped")
      complain("--group", "gives the name '" + name + "', which the parameters of no group have",
               "another name: --group 'norms=.*ln_.*'");
    else if (!groupNames.insert(name).second)
      complain("--group", "gives '" + name + "' twice",
               "one --group for each name; a pattern may have alternatives: 'first|second'");
    recipe.groups.emplace_back(name, pattern);
  }
  for (const std::string &text : batchNormOf) {
    auto [pattern, mode] = StringRef(text).rsplit('=');
    if (pattern.empty() || !is_contained({"train", "file", "all-ranks", "frozen"}, mode))
      complain("--batch-norm-of",
               "expects PATTERN=MODE with a mode of --batch-norm, found '" + text + "'",
               "--batch-norm-of 'backbone\\..*=frozen'");
    recipe.batchNormOf.emplace_back(pattern, mode);
  }
  checkChoices(report);
  if (!parseCudaArchitectures(cudaArchitectures))
    complain("--cuda-arch",
             "expects different compute capabilities, found '" + cudaArchitectures + "'",
             "--cuda-arch 80,90");
  if (!limitMemory.empty() && !parseBytes(limitMemory))
    complain("--limit-memory", "expects a size, found '" + limitMemory + "'",
             "--limit-memory 2GiB");
  recipe.rowChunk = readerInto(report).bytesOrZero("row-chunk", rowChunk, "64MiB");
  recipe.constants = constants;
  recipe.trains = !forwardOnly;
  recipe.predicts = !noPredictions;
  recipe.frozenType = frozenType;
  if (frozenType != "file" && (target != "cpu" || !library.empty() || precision == "f64"))
    complain("--frozen-type",
             "is of trainers for --target cpu alone so far, not of libraries or f64",
             "--frozen-type file");
  if (!forwardOnly)
    readLosses(recipe, report);
  recipe.optimizer = optimizer + (stateType == "f32" ? "" : "+" + stateType) +
                     (ema ? train::kWithAverage.str() : "");
  recipe.decay = decay;
  recipe.freeze = freeze;
  recipe.trainOnly = trainOnly;
  readAdapters(recipe, report);
  recipe.batchNorm = batchNorm;
  recipe.choosesBatchNorm = is_contained(given, "batch-norm");
  recipe.precision = precision;
  recipe.exportType = exportType;
  recipe.keptF32 = keepF32.empty() ? "" : readerInto(report).pattern("keep-f32", keepF32);
  if (stateType != "f32" && !train::findOptimizer(recipe.optimizer) &&
      train::findOptimizer(optimizer))
    complain("--state-type",
             "the states of " + optimizer + " are f32; those of " +
                 join(train::listNarrowableOptimizers(), ", ") + " may be " + stateType,
             "--state-type f32");
  if (stateType != "f32" && !gradientGraph.empty())
    complain("--write-gradient-graph", "the update of the graph has states in f32",
             "--state-type f32");
  if (stateType != "f32" && precision == "f64")
    complain("--state-type", "a program in f64 has states in f64; found '" + stateType + "'",
             "--precision f32");
  if (!keepF32.empty() && precision != "bf16" && precision != "fp16")
    complain("--keep-f32", "no product is narrower with --precision " + precision,
             "--precision bf16");
  if (isMinimal() && target != "cpu")
    complain("--target", "a minimal library computes on the processor; found '" + target + "'",
             "--library, or --target cpu");
  if (isMinimal() && precision != "f32")
    complain("--precision", "a minimal library computes in f32; found '" + precision + "'",
             "--library, or --precision f32");
  if (!targetTriple.empty() && march == "native" && !StringRef(targetTriple).starts_with("aarch64"))
    complain("--march", "native is this machine's, not one of '" + targetTriple + "'",
             "--march with a name that " + targetTriple + "-g++ knows");
  recipe.target = target;
  recipe.epilogues = !noEpilogues;
  recipe.kept = keep.empty() ? "" : readerInto(report).pattern("keep", keep);
  if (shardsGradients() && target == "cuda")
    complain("--shard", "gradients are shared out for --target cpu alone so far", "--shard none");
  if (updatesInBackward)
    checkUpdateInBackward(report);
  auto isOfAllRanks = [](const auto &one) { return one.second == "all-ranks"; };
  if ((batchNorm == "all-ranks" || any_of(recipe.batchNormOf, isOfAllRanks)) && target == "cuda")
    complain("--batch-norm", "statistics of all ranks are for --target cpu alone so far",
             "--batch-norm train, which takes those of each rank's batch");
  checkStage(recipe, report);
  return report.empty() ? std::optional(recipe) : std::nullopt;
}

/// What has no meaning where no memory ever has all gradients, or one rank updates alone.
void Options::checkUpdateInBackward(Report &report) const {
  auto complain = [&](bool found, const char *option, const char *why, const char *advice) {
    if (found)
      (void)report.error(ExitCode::usage, Subject::ofOption(option),
                         Twine("with --update-in-backward: ") + why, advice);
  };
  complain(target != "cpu", "--target", "it is for --target cpu alone so far", "--target cpu");
  complain(shard != "none", "--shard", "one rank has all parameters", "--shard none");
  complain(stages != "1", "--stages", "one rank has all parameters", "--stages 1");
  complain(!library.empty(), "--library", "a library's caller has the loop", "one of the two");
  complain(precision == "fp16", "--precision",
           "a gradient that is out of range is found when others have been used",
           "--precision bf16");
  complain(!gradientGraph.empty(), "--write-gradient-graph", "its update is one step",
           "one of the two");
}

/// All numbers of an array, in its order.
static std::vector<double> readNumbers(const std::string &path, std::string &problem) {
  try {
    input_file npy(path, static_cast<int>(ExitCode::usage));
    npy_header header = read_npy_header(npy);
    // Of 64 bits, integers too: no weight has so many digits that it would be rounded.
    bool areIntegers = converts_without_loss(header.type, data_type::i64);
    if (!areIntegers && !converts_without_loss(header.type, data_type::f64)) {
      problem = path + ": holds " + name_of(header.type) + ", expected numbers";
      return {};
    }
    auto count = static_cast<size_t>(header.element_count);
    std::vector<char> bytes(count * static_cast<size_t>(bytes_of(header.type)));
    npy.read(header.data_offset, bytes.data(), static_cast<int64_t>(bytes.size()));
    std::vector<double> numbers(count);
    std::vector<int64_t> integers(areIntegers ? count : 0);
    if (areIntegers)
      convert(header.type, bytes.data(), data_type::i64, integers.data(), header.element_count);
    else
      convert(header.type, bytes.data(), data_type::f64, numbers.data(), header.element_count);
    llvm::copy(integers, numbers.begin());
    return numbers;
  } catch (const std::exception &unread) {
    problem = unread.what();
    return {};
  }
}

void Options::readLosses(Recipe &recipe, Report &report) const {
  auto read = [&](const std::string &path, std::string &problem) {
    recipe.lossFiles.push_back(path);
    return readNumbers(path, problem);
  };
  for (const std::string &text : losses) {
    train::LossProblem problem;
    if (std::optional<train::LossTerm> term = train::parseLossTerm(text, read, problem))
      recipe.losses.push_back(term->text());
    else
      (void)report.error(ExitCode::usage, Subject::ofOption("--loss"), problem.message,
                         problem.advice);
  }
  if (losses.empty())
    recipe.losses.push_back(train::kDefaultLoss.str());
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

void Options::readAdapters(Recipe &recipe, Report &report) const {
  auto complain = [&](StringRef option, const Twine &message, const Twine &advice) {
    (void)report.error(ExitCode::usage, Subject::ofOption(option), message, advice);
  };
  auto isNumber = [](StringRef text, double &number) {
    return !text.getAsDouble(number) && std::isfinite(number);
  };
  for (const std::string &text : lora) {
    StringRef rank = loraRank, alpha = loraAlpha;
    AdapterChoice choice = parseAdapters(text, rank, alpha);
    if (auto [front, setting] = StringRef(choice.pattern).rsplit(',');
        !setting.empty() && setting.split('=').first.size() < setting.size() &&
        all_of(setting.split('=').first, isAlpha))
      complain("--lora", "has no setting '" + setting.split('=').first + "'", "rank=R or alpha=A");
    if (choice.pattern.empty())
      complain("--lora", "expects PATTERN[,rank=R][,alpha=A], found '" + text + "'",
               "--lora '.*attn.*,rank=16'");
    if (rank.getAsInteger(10, choice.rank) || choice.rank < 1)
      complain("--lora-rank", "expects an integer from 1, found '" + rank + "'", "--lora-rank 8");
    if (!isNumber(alpha, choice.alpha) || choice.alpha <= 0)
      complain("--lora-alpha", "expects a number above 0, found '" + alpha + "'",
               "--lora-alpha 16");
    recipe.adapters.push_back(std::move(choice));
  }
  if (!isNumber(loraDropout, recipe.adapterDropout) ||
      !(recipe.adapterDropout >= 0 && recipe.adapterDropout < 1))
    complain("--lora-dropout", "expects a number from 0 to below 1, found '" + loraDropout + "'",
             "--lora-dropout 0.05");
  if (!lora.empty() && !groups.empty())
    complain("--group", "adapters are in no group yet, so its rate would not be theirs",
             "the command without --group or without --lora");
  for (StringRef name : {"lora-rank", "lora-alpha", "lora-dropout"})
    if (lora.empty() && is_contained(given, name))
      complain(dashed(name), "has no effect without --lora", "--lora '.*attn.*'");
}

std::optional<RecomputeOptions> Options::recomputeOptions(Report &report) const {
  RecomputeOptions found{recompute, 0, join(recomputePatterns, "|")};
  auto complain = [&](const Twine &option, const Twine &message, const Twine &advice) {
    (void)report.error(ExitCode::usage, Subject::ofOption(option), message, advice);
  };
  if (std::optional<int64_t> budget = parseBytes(memoryBudget))
    found.budget = *budget;
  else if (!memoryBudget.empty())
    complain("--memory-budget", "expects a size, found '" + memoryBudget + "'",
             "--memory-budget 1.5GiB");
  if (!memoryBudget.empty() && recompute != "none")
    complain("--recompute", "contradicts --memory-budget, which chooses what is recomputed",
             "one of the two");
  for (const std::string &pattern : recomputePatterns)
    readerInto(report).pattern("recompute-pattern", pattern);
  if (recomputePatterns.size() > 1) // may be too large together
    readerInto(report).pattern("recompute-pattern", found.pattern);
  return report.empty() ? std::optional(found) : std::nullopt;
}

void Options::acceptFindings(Report &report) const {
  std::vector<StringRef> names;
  for (const FindingEntry &entry : findingEntries())
    names.push_back(entry.name);
  for (const std::string &name : accepted)
    if (is_contained(names, name))
      report.accept(findingOf(name));
    else
      (void)report.error(ExitCode::usage, Subject::ofOption("--accept"),
                         "no finding is called '" + name + "'",
                         "--accept " + nearestOf(names, name, names.front()).str() + "; all are " +
                             join(names, ", "));
}

std::optional<rank_layout> Options::runLayout(Report &report) const {
  constexpr int64_t most = 65536; // ranks, and micro-batches: as the trainer
  rank_layout run;
  auto complain = [&](const Twine &message, const Twine &advice) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--run-with"), message, advice);
  };
  llvm::StringSet<> named;
  for (StringRef text : planRun) {
    auto [name, value] = text.split('=');
    int64_t number = 0;
    const bool isNumber = !value.getAsInteger(10, number) && number >= 1 && number <= most;
    if (!named.insert(name).second)
      complain("gives '" + name + "' twice", "one --run-with for each name");
    else if (name == "ranks" && isNumber)
      run.replicas = run.ranks_on_host = int(number);
    else if (name == "micro-batches" && isNumber)
      run.micro_batches = number;
    else if (text == "accumulation=running")
      run.accumulated = accumulation::running;
    else if (text == "shard=optimizer")
      run.shared = sharing::state;
    else if (text != "accumulation=pairwise" && text != "shard=none")
      complain(
          "expects ranks=N, micro-batches=N, accumulation=running or shard=optimizer, found '" +
              text + "'",
          "--run-with ranks=4 --run-with micro-batches=8, one for each");
  }
  if (updatesInBackward && (run.replicas > 1 || run.micro_batches > 1))
    complain("with --update-in-backward: one rank takes one micro-batch", "one of the two");
  if (shardsGradients() && run.shared == sharing::state)
    complain("shard=optimizer is of programs that are not compiled with --shard gradients",
             "the command without shard=optimizer");
  return planRun.empty() || !report.empty() ? std::nullopt : std::optional(run);
}

std::optional<StageOptions> Options::stageOptions(Report &report) const {
  OptionReader reader = readerInto(report);
  StageTexts texts{stages, chunksPerStage, schedule, microBatches, cuts};
  if (schedule != "interleaved" && !is_contained(given, "chunks-per-stage"))
    texts.chunksPerStage.clear(); // the default is that of interleaved
  StageOptions found = readStages(texts, reader);
  found.memoryLimit = parseBytes(limitMemory).value_or(0);
  found.target = target;
  auto complain = [&](StringRef name, const Twine &message, const Twine &advice) {
    reader.complain(name, "", message, advice);
  };
  if (int64_t asked = 0; to_integer(stages, asked, 10) && asked == 1)
    for (StringRef name : {"cut", "schedule", "micro-batches"})
      if (is_contained(given, name))
        complain(name, "has no effect on a step of one stage",
                 name == "micro-batches" ? "--micro-batches of the trainer; or --stages 2"
                                         : "--stages 2");
  if (found.stages > 1 && !keep.empty())
    complain("keep", "keeps no values of a step in stages so far", "--stages 1");
  if (!reader.good() || found.stages == 1)
    return reader.good() ? std::optional(found) : std::nullopt;
  checkStages(found, reader);
  for (StringRef name : {"memory-budget", "memory-curve", "run-with"})
    if (is_contained(given, name))
      complain(name, "is of a step in one piece, not of one in stages",
               "--recompute light or full, and --limit-memory, to which the cuts keep");
  return reader.good() ? std::optional(found) : std::nullopt;
}

void Options::checkChoices(Report &report) const {
  auto check = [&](StringRef name, StringRef choices, StringRef value) {
    SmallVector<StringRef> known;
    choices.split(known, '|');
    if (known.size() > 1)
      readerInto(report).choice(name, value, known);
  };
#define SECTION(title)
#define TEXT(member, name, value, default_, help) check(name, placeholderOf(name, value), member);
#define LIST(member, name, value, help)
#define FLAG(member, name, help)
#define CHOICE(member, name, value, help)                                                          \
  if (!member.empty())                                                                             \
    check(name, value, member);
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
#undef CHOICE
}

/// --stop-after names a step, and no option is given that nothing would look at.
void Options::checkStage(const Recipe &recipe, Report &report) const {
  std::vector<std::string> stages = pipelinePasses(recipe);
  stages.insert(stages.begin(), "import");
  stages.push_back("emit");
  if (stopAfter.empty() || is_contained(stages, stopAfter))
    return refuseIdleOptions(stages, report);
  (void)report.error(ExitCode::usage, Subject::ofOption("--stop-after"),
                     "no step is called '" + stopAfter + "'",
                     "--stop-after with one of " + join(stages, ", "));
}

/// What nothing would ever look at: nobody shall take it for heard.
void Options::refuseIdleOptions(ArrayRef<std::string> stages, Report &report) const {
  auto refuse = [&](ArrayRef<StringRef> names, const Twine &why,
                    const Twine &advice = "the command without it") {
    for (StringRef name : names)
      if (is_contained(given, name))
        (void)report.error(ExitCode::usage, Subject::ofOption(dashed(name)), "has no effect " + why,
                           advice);
  };
  for (StringRef printing : {"list-operators", "print-documentation"}) {
    if (!is_contained(given, printing))
      continue;
    SmallVector<StringRef> others;
    for (StringRef name : given)
      if (name != printing && name != "message-format" && name != "quiet")
        others.push_back(name);
    refuse(others, "with --" + printing + ", which reads no model");
    if (!model.empty())
      (void)report.error(ExitCode::usage, model, "is not read with --" + printing,
                         "the command without it");
    return;
  }
  const StringRef ofOutput[] = {"o",       "source-only", "bundle",         "limit-memory",
                                "library", "depfile",     "depfile-target", "host-compiler",
                                "nvcc"};
  if (printParameters) {
    refuse(ofOutput, "with --print-parameters, which makes no output");
    refuse({"check", "stop-after", "print-ir", "dump-ir", "memory-curve", "write-gradient-graph"},
           "with --print-parameters, which runs no pass");
    return;
  }
  if (check) {
    refuse(ofOutput, "with --check, which makes no output");
    refuse({"stop-after", "print-ir", "memory-curve", "write-gradient-graph"},
           "with --check, which stops by itself");
    return;
  }
  if (memoryCurve && !forwardOnly) {
    refuse(ofOutput, "with --memory-curve, which makes no output");
    refuse({"stop-after", "print-ir"}, "with --memory-curve, which stops by itself");
    refuse({"memory-budget", "recompute"}, "with --memory-curve, which goes through budgets");
    return;
  }
  if (!stopAfter.empty() && stopAfter != "emit") {
    refuse(ofOutput, "with --stop-after " + stopAfter + ", which makes no output");
    if (find(stages, stopAfter) < find(stages, kGradientGraphBehind))
      refuse({"write-gradient-graph"}, "with --stop-after " + stopAfter,
             Twine("--stop-after ") + kGradientGraphBehind + ", or a later step");
    return;
  }
  if (stopAfter.empty() || stopAfter == "emit")
    refuse({"print-ir"}, stopAfter.empty() ? "without --stop-after" : "with --stop-after emit",
           "--stop-after with a pass before emit");
  if (depfile.empty())
    refuse({"depfile-target"}, "without --depfile", "--depfile FILE");
  if (!compiles())
    refuse({"bundle", "host-compiler", "nvcc"},
           sourceOnly ? "with --source-only, which makes no trainer"
                      : "with --stop-after emit, which makes no trainer");
  if (target == "cpu")
    refuse({"nvcc", "cuda-arch", "no-epilogues"}, "on a trainer for --target cpu");
  else
    refuse({"march"}, "on a trainer for --target " + target);
  if (!library.empty())
    refuse({"stages", "shard"}, "on a library, which has no ranks");
  if (isMinimal())
    refuse({"bundle"}, "with --library=minimal, which makes no trainer");
  else
    refuse({"target-triple"}, "without --library=minimal", "both");
  if (forwardOnly)
    refuse({"loss",
            "optimizer",
            "ema",
            "state-type",
            "update-in-backward",
            "no-predictions",
            "frozen-type",
            "decay",
            "group",
            "buffer",
            "freeze",
            "lora",
            "batch-norm",
            "batch-norm-of",
            "recompute",
            "recompute-pattern",
            "memory-budget",
            "memory-curve",
            "run-with",
            "stages",
            "cut",
            "schedule",
            "chunks-per-stage",
            "micro-batches",
            "shard",
            "keep",
            "write-gradient-graph"},
           "on a program that only runs the model forward",
           "the command without it, or without --forward-only");
}

static std::string escapeMarkdown(StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string optionsDocumentation() {
  std::string text = "# Options of trainc\n\n"
                     "Written by `trainc --print-documentation` from `compiler/options.def`.\n";
  auto row = [&](const std::string &option, StringRef help, StringRef otherwise) {
    text += "| `" + escapeMarkdown(option) + "` | " + escapeMarkdown(help);
    if (!otherwise.empty())
      text += " (default `" + otherwise.str() + "`)";
    text += " |\n";
  };
#define SECTION(title) text += "\n## " title "\n\n| option | meaning |\n|---|---|\n";
#define TEXT(member, name, value, default_, help)                                                  \
  row(dashed(name) + " " + placeholderOf(name, value), help, default_);
#define LIST(member, name, value, help) row(dashed(name) + " " value, help, "");
#define FLAG(member, name, help) row(dashed(name), help, "");
#define CHOICE(member, name, value, help) row(dashed(name) + "[=" value "]", help, "");
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
#undef CHOICE
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
