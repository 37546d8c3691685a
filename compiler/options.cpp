// SPDX-License-Identifier: Apache-2.0
//
// The command line of trainc, made from options.def on LLVM's command-line library.
#include "compiler/options.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/exit_codes.h"
#include "compiler/memory_limit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

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
    "and `plan/` (memory plan, kernels, parameters as text).\n";

static std::string exitCodeHelp() {
  std::string text = "\nExit codes:\n";
  for (const ExitCodeEntry &entry : kExitCodes)
    text += "  " + std::to_string(static_cast<int>(entry.code)) + "  " + entry.meaning + "\n";
  return text;
}

namespace {
struct Parser {
  cl::OptionCategory category{"trainc options"};
  cl::opt<std::string> model{cl::Positional, cl::desc("MODEL.onnx"), cl::cat(category)};
#define SECTION(title)
#define TEXT(member, name, value, default_, help)                                                  \
  cl::opt<std::string> member{name, cl::value_desc(value), cl::init(default_), cl::desc(help),     \
                              cl::cat(category)};
#define LIST(member, name, value, help)                                                            \
  cl::list<std::string> member{name, cl::value_desc(value), cl::desc(help), cl::cat(category)};
#define FLAG(member, name, help) cl::opt<bool> member{name, cl::desc(help), cl::cat(category)};
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
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

// Words that are no option, each with the nearest one; LLVM's parser would take `--optimiser` for
// an `-o`.
static bool namesKnownOptions(int argc, char **argv, Report &report) {
  StringMap<cl::Option *> &known = cl::getRegisteredOptions();
  for (int i = 1; i < argc && StringRef(argv[i]) != "--"; ++i) {
    StringRef word = argv[i];
    if (!word.starts_with("-") || word == "-")
      continue;
    auto [name, value] = word.ltrim('-').split('=');
    auto found = known.find(name);
    if (found != known.end()) {
      bool separate =
          !word.contains('=') && found->second->getValueExpectedFlag() == cl::ValueRequired;
      i += separate ? 1 : 0;
      continue;
    }
    StringRef nearest = "help";
    unsigned distance = name.size() / 3 + 2;
    for (auto &entry : known)
      if (unsigned edits = name.edit_distance(entry.getKey()); edits < distance) {
        nearest = entry.getKey();
        distance = edits;
      }
    (void)report.error(ExitCode::usage, Subject::ofProgram("trainc"),
                       "unknown option '" + word.split('=').first + "'",
                       (nearest.size() == 1 ? "-" : "--") + nearest);
  }
  return report.empty();
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

std::optional<Options> parseOptions(int argc, char **argv, Report &report) {
  forgetLibraryOptions();
  static Parser parser;
  if (!namesKnownOptions(argc, argv, report))
    return std::nullopt;
  cl::HideUnrelatedOptions(parser.category);
  static const std::string exitCodes = exitCodeHelp();
  static const cl::extrahelp moreHelp(exitCodes);
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
#define SECTION(title)
#define TEXT(member, name, value, default_, help) options.member = parser.member;
#define LIST(member, name, value, help)                                                            \
  options.member.assign(parser.member.begin(), parser.member.end());
#define FLAG(member, name, help) options.member = parser.member;
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
  return options;
}

std::optional<Recipe> Options::recipe(Report &report) const {
  Recipe recipe;
  auto complain = [&](const Twine &message, const Twine &advice) {
    (void)report.error(ExitCode::usage, Subject::ofProgram("trainc"), message, advice);
  };
  for (const std::string &text : dimensions) {
    auto [name, size] = StringRef(text).rsplit('='); // names may hold equals signs
    int64_t number = 0;
    if (name.empty() || size.getAsInteger(10, number) || number <= 0)
      complain("--dim expects NAME=SIZE with a positive size, found '" + text + "'",
               "--dim batch=8");
    else if (!recipe.dimensions.emplace(name.str(), number).second)
      complain("--dim gives '" + name + "' twice", "one --dim for each dimension");
  }
  if (!batch.empty() && (StringRef(batch).getAsInteger(10, recipe.batch) || recipe.batch <= 0))
    complain("--batch expects a positive number, found '" + batch + "'", "--batch 8");
  for (const std::string &text : buffers) {
    auto [name, outputName] = StringRef(text).split('=');
    if (name.empty() || outputName.empty())
      complain("--buffer expects NAME=OUTPUT, found '" + text + "'",
               "--buffer running_mean=new_running_mean");
    else if (!recipe.buffers.emplace(name.str(), outputName.str()).second)
      complain("--buffer gives '" + name + "' twice", "one --buffer for each initializer");
  }
  if (precision != "f32" && precision != "f64")
    complain("unknown precision '" + precision + "'", "--precision f32 or f64");
  if (target != "cpu" && target != "cuda")
    complain("unknown target '" + target + "'", "--target cpu or cuda");
  if (!parseCudaArchitectures(cudaArchitectures))
    complain("--cuda-arch expects different compute capabilities, found '" + cudaArchitectures +
                 "'",
             "--cuda-arch 80,90");
  if (batchNorm != "train" && batchNorm != "frozen")
    complain("unknown mode '" + batchNorm + "' of batch norm", "--batch-norm train or frozen");
  if (!limitMemory.empty() && !parseBytes(limitMemory))
    complain("--limit-memory expects a size, found '" + limitMemory + "'", "--limit-memory 2GiB");
  if (bundle && sourceOnly)
    complain("--bundle says nothing where --source-only makes no trainer", "one of the two");
  if (!parseMessageFormat(messageFormat))
    complain("unknown format '" + messageFormat + "' of messages",
             "--message-format text, json or sarif");
  const Options defaults;
  auto refuse = [&](StringRef name, const auto &given, const auto &otherwise) {
    if (given != otherwise)
      complain("--" + name + " says nothing to a trainer for --target " + target,
               "the command without it");
  };
  if (target == "cpu") {
    refuse("nvcc", nvcc, defaults.nvcc);
    refuse("cuda-arch", cudaArchitectures, defaults.cudaArchitectures);
    refuse("no-epilogues", noEpilogues, defaults.noEpilogues);
  } else {
    refuse("march", march, defaults.march);
  }
  auto refuseForward = [&](StringRef name, const auto &given, const auto &otherwise) {
    if (given != otherwise)
      complain("--" + name + " says nothing to a program that only runs the model forward",
               "the command without it, or without --forward-only");
  };
  if (forwardOnly) {
    refuseForward("loss", loss, defaults.loss);
    refuseForward("loss-output", lossOutput, defaults.lossOutput);
    refuseForward("optimizer", optimizer, defaults.optimizer);
    refuseForward("decay", decay, defaults.decay);
    refuseForward("buffer", buffers, defaults.buffers);
    refuseForward("freeze", freeze, defaults.freeze);
    refuseForward("batch-norm", batchNorm, defaults.batchNorm);
  }
  recipe.constants = constants;
  recipe.trains = !forwardOnly;
  recipe.loss = loss;
  recipe.lossOutput = lossOutput;
  recipe.optimizer = optimizer;
  recipe.decay = decay;
  recipe.freeze = freeze;
  recipe.trainOnly = trainOnly;
  recipe.batchNorm = batchNorm;
  recipe.precision = precision;
  recipe.target = target;
  recipe.epilogues = !noEpilogues;
  return report.empty() ? std::optional(recipe) : std::nullopt;
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
    text += "| `" + option + "` | " + escapeMarkdown(help);
    if (!otherwise.empty())
      text += " (default `" + otherwise.str() + "`)";
    text += " |\n";
  };
  auto dashes = [](StringRef name) { return (name.size() == 1 ? "-" : "--") + name.str(); };
#define SECTION(title) text += "\n## " title "\n\n| option | meaning |\n|---|---|\n";
#define TEXT(member, name, value, default_, help) row(dashes(name) + " " value, help, default_);
#define LIST(member, name, value, help) row(dashes(name) + " " value, help, "");
#define FLAG(member, name, help) row(dashes(name), help, "");
#include "compiler/options.def"
#undef SECTION
#undef TEXT
#undef LIST
#undef FLAG
  text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const ExitCodeEntry &entry : kExitCodes)
    text += "| " + std::to_string(static_cast<int>(entry.code)) + " | " + entry.meaning + " |\n";
  return text;
}

} // namespace trainc
