// SPDX-License-Identifier: Apache-2.0
//
// The options of trainc, a row each: name, value, meaning, and when it has no effect or contradicts
// another (runtime/options/option_table.h says how). Parser, --help and docs/trainc.md come from
// them. Values that need more than a word to be read have a function above the rows.
#include "compiler/option_rows.h"
#include "compiler/cuda_toolkit.h"
#include "dialects/train/loss_term.h"
#include "dialects/train/optimizer.h"
#include "passes/options/option_reader.h"
#include "runtime/files/conversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <cmath>

using namespace llvm;

namespace trainc {
namespace {

// ---- values

/// What is wrong with a text, and what would help.
std::string problemOf(const Twine &message, const Twine &advice) {
  return with_advice(message.str(), advice.str());
}

/// What the passes would say of a value, too.
template <typename Check> std::string checkedAsInPasses(const Check &check) {
  std::string problem;
  OptionReader reader(kOfCommand, [&](const OptionProblem &found) {
    problem = with_advice(found.message, found.advice);
  });
  check(reader);
  return problem;
}

/// A whole number after the last equals sign, since names may have some.
template <typename Numbers>
std::string readNumber(StringRef text, Numbers &numbers, StringRef form, StringRef example,
                       StringRef once) {
  auto [name, digits] = text.rsplit('=');
  int64_t number = 0;
  if (name.empty() || digits.getAsInteger(10, number) || number < 0)
    return problemOf("expects " + form + " from 0, found '" + text + "'", example);
  if (!numbers.emplace(name.str(), number).second)
    return problemOf("gives '" + name + "' twice", once);
  return "";
}

std::string readDimension(StringRef text, Options &options) {
  return readNumber(text, options.asked.dimensions, "NAME=SIZE with a size", "--dim batch=8",
                    "one --dim for each dimension");
}

std::string readBatchAxis(StringRef text, Options &options) {
  return readNumber(text, options.asked.batchAxes, "NAME=AXIS with an axis", "--batch-axis x=1",
                    "one --batch-axis for each name");
}

std::string readBatch(StringRef text, Options &options) {
  if (text.getAsInteger(10, options.asked.batch) || options.asked.batch <= 0)
    return problemOf("expects a positive number, found '" + text + "'", "--batch 8");
  return "";
}

std::string readBuffer(StringRef text, Options &options) {
  auto [name, outputName] = text.split('=');
  if (name.empty() || outputName.empty())
    return problemOf("expects NAME=OUTPUT, found '" + text + "'",
                     "--buffer running_mean=new_running_mean");
  if (!options.asked.buffers.emplace(name.str(), outputName.str()).second)
    return problemOf("gives '" + name + "' twice", "one --buffer for each initializer");
  return "";
}

std::string readGroup(StringRef text, Options &options) {
  StringRef name, pattern;
  std::tie(name, pattern) = text.split('=');
  auto &groups = options.asked.groups;
  if (pattern.empty() || !Regex("^[a-z][a-z0-9]*(-[a-z0-9]+)*$").match(name))
    return problemOf("expects NAME=PATTERN, the name of small letters, digits and dashes; found '" +
                         text + "'",
                     "--group 'norms=.*ln_.*'");
  if (name == "ungrouped")
    return problemOf("gives the name '" + name + "', which the parameters of no group have",
                     "another name: --group 'norms=.*ln_.*'");
  if (any_of(groups, [&](const auto &group) { return group.first == name; }))
    return problemOf("gives '" + name + "' twice",
                     "one --group for each name; a pattern may have alternatives: 'first|second'");
  groups.emplace_back(name, pattern);
  return "";
}

std::string readBatchNormOf(StringRef text, Options &options) {
  auto [pattern, mode] = text.rsplit('=');
  if (pattern.empty() || !is_contained({"train", "file", "all-ranks", "frozen"}, mode))
    return problemOf("expects PATTERN=MODE with a mode of --batch-norm, found '" + text + "'",
                     "--batch-norm-of 'backbone\\..*=frozen'");
  options.asked.batchNormOf.emplace_back(pattern, mode);
  return "";
}

/// All numbers of an array, in its order.
std::vector<double> readNumbers(const std::string &path, std::string &problem) {
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

std::string readLoss(StringRef text, Options &options) {
  auto read = [&](const std::string &path, std::string &problem) {
    options.asked.lossFiles.push_back(path);
    return readNumbers(path, problem);
  };
  train::LossProblem problem;
  std::optional<train::LossTerm> term = train::parseLossTerm(text, read, problem);
  if (!term)
    return with_advice(problem.message, problem.advice);
  options.asked.losses.push_back(term->text());
  return "";
}

std::string readRunWith(StringRef text, Options &options) {
  constexpr int64_t most = 65536; // ranks, and micro-batches: as the trainer
  rank_layout &run = options.startedAs;
  auto [name, value] = text.split('=');
  int64_t number = 0;
  const bool isNumber = !value.getAsInteger(10, number) && number >= 1 && number <= most;
  if (any_of(options.lists["run-with"],
             [&](StringRef other) { return other.split('=').first == text.split('=').first; }))
    return problemOf("gives '" + name + "' twice", "one --run-with for each name");
  if (name == "ranks" && isNumber)
    run.replicas = run.ranks_on_host = int(number);
  else if (name == "micro-batches" && isNumber)
    run.micro_batches = number;
  else if (text == "accumulation=running")
    run.accumulated = accumulation::running;
  else if (text == "shard=optimizer")
    run.shared = sharing::state;
  else if (text != "accumulation=pairwise" && text != "shard=none")
    return problemOf("expects ranks=N, micro-batches=N, accumulation=running or shard=optimizer, "
                     "found '" +
                         text + "'",
                     "--run-with ranks=4 --run-with micro-batches=8, one for each");
  return "";
}

std::string checkAccepted(StringRef text, Options &) {
  std::vector<StringRef> names;
  for (const FindingEntry &entry : findingEntries())
    names.push_back(entry.name);
  if (is_contained(names, text))
    return "";
  return problemOf("no finding is called '" + text + "'",
                   "--accept " + nearestOf(names, text, names.front()) + "; all are " +
                       join(names, ", "));
}

std::string checkArchitectures(StringRef text, Options &) {
  if (parseCudaArchitectures(text))
    return "";
  return problemOf("expects different compute capabilities, found '" + text + "'",
                   "--cuda-arch 80,90");
}

std::string checkRowChunk(StringRef text, Options &) {
  return checkedAsInPasses(
      [&](OptionReader &reader) { reader.bytesOrZero("row-chunk", text, "64MiB"); });
}

std::string checkShard(StringRef text, Options &) {
  return text == "optimizer" ? problemOf("expects one of none, gradients; found 'optimizer'",
                                         "the trainer's own --shard optimizer, with any program")
                             : "";
}

// ---- rows

/// `also` reads a text further, or says what is wrong with it, before the row takes it over.
option_row readBy(std::string (*also)(StringRef, Options &), option_row row) {
  row.read = [also, read = std::move(row.read)](const std::string &text, value_range range,
                                                void *values) {
    const std::string problem = also(text, *static_cast<Options *>(values));
    return problem.empty() ? read(text, range, values) : problem;
  };
  return row;
}

template <typename Place>
option_row row(const std::string &name, Place place, const std::string &placeholder,
               const char *help) {
  option_row result = option_of<Options>(name, place, placeholder, 1, help);
  if (placeholder.find('|') == std::string::npos)
    return result;
  result.choices = placeholder;
  return std::move(result).checked([name, placeholder](const std::string &text) {
    SmallVector<StringRef> words;
    StringRef(placeholder).split(words, '|');
    return checkedAsInPasses([&](OptionReader &reader) { reader.choice(name, text, words); });
  });
}

option_row flag(const char *name, bool Options::*place, const char *help) {
  return row(name, place, "", help);
}

/// What the recipe has as it is given.
template <auto Member> constexpr auto ofRecipe = [](auto &options) -> auto & {
  return options.asked.*Member;
};

/// The field of a list that the recipe has in another form.
struct ListPlace {
  std::string name;
  std::vector<std::string> &operator()(Options &options) const { return options.lists[name]; }
  std::vector<std::string> operator()(const Options &options) const {
    auto found = options.lists.find(name);
    return found == options.lists.end() ? std::vector<std::string>() : found->second;
  }
};

option_row listRow(const std::string &name, const char *placeholder,
                   std::string (*read)(StringRef, Options &), const char *help) {
  return readBy(read, row(name, ListPlace{name}, placeholder, help));
}

option_row patternRow(option_row row) {
  const std::string name = row.name;
  return std::move(row).checked([=](const std::string &text) {
    return checkedAsInPasses([&](OptionReader &reader) { reader.pattern(name, text); });
  });
}

option_row sizeRow(const char *name, std::string Options::*place, const char *example,
                   const char *help) {
  return row(name, place, "SIZE", help).checked([=](const std::string &text) {
    return parseBytes(text) ? std::string()
                            : problemOf("expects a size, found '" + text + "'",
                                        Twine("--") + name + " " + example);
  });
}

using Conditions = std::vector<option_condition>;
option_condition idle(const char *when, const char *why,
                      const char *advice = "the command without it") {
  return {when, std::string("has no effect ") + why, advice, true};
}

const char *const kCurve = "memory-curve !forward-only";

Conditions makesNoOutput() {
  return {
      idle("print-parameters", "with --print-parameters, which makes no output"),
      idle("check", "with --check, which makes no output"),
      idle(kCurve, "with --memory-curve, which makes no output"),
      idle("stop-after stop-after!=emit", "with --stop-after {stop-after}, which makes no output")};
}

Conditions runsNoPass() {
  return {idle("print-parameters", "with --print-parameters, which runs no pass")};
}

Conditions stopsItself() {
  return {idle("check", "with --check, which stops by itself"),
          idle(kCurve, "with --memory-curve, which stops by itself")};
}

Conditions isNotCompiled() {
  return {idle("source-only", "with --source-only, which makes no trainer"),
          idle("stop-after=emit", "with --stop-after emit, which makes no trainer")};
}

Conditions hasStages() {
  return {{"stages!=1", "is of a step in one piece, not of one in stages",
           "--recompute light or full, and --limit-memory, to which the cuts keep", true}};
}

Conditions isOnCpu() { return {idle("target=cpu", "on a trainer for --target cpu")}; }

std::vector<option_row> modelRows() {
  return {
      listRow("dim", "NAME=SIZE", readDimension,
              "size of a symbolic dimension of the model's inputs, such as batch=8, or by its "
              "place, such as x[0]=8; every one needs a size; inputs that a size of 0 makes empty, "
              "such as a decoder's past, are left out")
          .usual(),
      readBy(readBatch, row("batch", &Options::batch, "SIZE",
                            "samples of a batch where the file fixes the first axis of its inputs, "
                            "at 1 as a rule: shapes inside the model follow; an error names the "
                            "operator that would compute one sample from another"))
          .usual(),
      listRow(
          "batch-axis", "NAME=AXIS", readBatchAxis,
          "the axis that counts samples, of an input or output that has another one first, such as "
          "x=1 of [time, batch, features]; the trainer takes and writes it with samples first"),
      row("constant", ofRecipe<&Recipe::constants>, "NAME=VALUE",
          "fixes an input of the model: numbers between commas, or the array of FILE.npy; exports "
          "keep it as the input's default"),
      row("operator", &Options::operators, "FILE.json",
          "an operator of a domain of its own, whose functions are in the C++ or CUDA files that "
          "this manifest names: docs/custom_operators.md"),
  };
}

std::vector<option_row> trainingRows() {
  const std::string narrowed = join(train::listNarrowableOptimizers(), ", ");
  const std::string notNarrowed =
      "state-type!=f32 optimizer!=" + join(train::listNarrowableOptimizers(), "|");
  return {
      listRow(
          "loss", "[OUTPUT=]NAME[,SETTING=VALUE...][*FACTOR]", readLoss,
          "loss NAME (see Losses below; default cross_entropy) of the model's OUTPUT, which may be "
          "left out where it has one; given several times, the loss is the sum, each part times "
          "its FACTOR. Adds the input `labels`, or where several outputs have labels "
          "`OUTPUT_labels` for each (with `loss_` in front of a name that the model has)")
          .usual(),
      row("optimizer", &Options::optimizer, join(train::listOptimizers(), "|"),
          "what the parameters are updated by; its hyperparameters are options of the trainer (see "
          "Optimizers below)")
          .shown_as("NAME")
          .usual(),
      row("state-type", &Options::stateType, "f32|bf16|8bit",
          "what the states of adam, adamw and lion are kept in: bf16, 2 bytes a number; 8bit, 1 "
          "byte, and a scale for each 256 of a parameter; the update computes in f32 "
          "(docs/precision.md)")
          .refused({notNarrowed},
                   "the states of {optimizer} are f32; those of " + narrowed +
                       " may be {state-type}",
                   "--state-type f32")
          .refused({"state-type!=f32 precision=f64"},
                   "a program in f64 has states in f64; found '{state-type}'", "--precision f32"),
      flag("ema", &Options::ema,
           "keep a moving average of the parameters beside them: `train --ema DECAY` (default "
           "0.999) of the trainer, and `evaluate`, `predict`, `gradients`, `export`, `generate` "
           "with `--ema` use it"),
      flag("forward-only", &Options::forwardOnly,
           "compile the model's outputs alone, without loss, gradients and optimizer: the program "
           "has `predict`, `export` and `info`"),
      row("decay", ofRecipe<&Recipe::decay>, "PATTERN",
          "regular expression of the names of parameters that weight decay applies to; default: "
          "those of two or more axes, not counting axes of size 1 that an exporter gave a vector"),
      listRow("group", "NAME=PATTERN", readGroup,
              "the trained parameters whose names match this regular expression are the group "
              "NAME, whose learning rate and weight decay are options of the trainer: "
              "--learning-rate-of-NAME, --weight-decay-of-NAME; given several times, the first "
              "that matches a parameter has it")
          .refused({"lora group"}, "adapters are in no group yet, so its rate would not be theirs",
                   "the command without --group or without --lora"),
      row("freeze", ofRecipe<&Recipe::freeze>, "PATTERN",
          "regular expression of parameters that are not trained")
          .usual(),
      row("train-only", ofRecipe<&Recipe::trainOnly>, "PATTERN",
          "regular expression of the only initializers to train, against the rules of "
          "docs/parameter_rules.md"),
      row("lora", &Options::lora, "PATTERN[,rank=R][,alpha=A]",
          "low-rank adapters beside the products of the weights whose names this regular "
          "expression matches: y = W x + (alpha / rank) B A x; they alone are trained, and what "
          "--train-only names; given several times, the first that matches a weight has it "
          "(docs/adapters.md)")
          .usual(),
      row("lora-rank", &Options::loraRank, "R", "rank of adapters where --lora has none")
          .idle("!lora", "has no effect without --lora", "--lora '.*attn.*'"),
      row("lora-alpha", &Options::loraAlpha, "A", "alpha of adapters where --lora has none")
          .idle("!lora", "has no effect without --lora", "--lora '.*attn.*'"),
      row("lora-dropout", &Options::loraDropout, "P",
          "share of what adapters read that training drops, from 0 to below 1")
          .idle("!lora", "has no effect without --lora", "--lora '.*attn.*'"),
      listRow("buffer", "NAME=OUTPUT", readBuffer,
              "initializer that is not trained but replaced, in every step, by this output of the "
              "model, such as running statistics; OUTPUT is not an output of the program then"),
      row("batch-norm", ofRecipe<&Recipe::batchNorm>, "train|file|all-ranks|frozen",
          "train: batch norms take the statistics of the batch in training and update their "
          "running ones; all-ranks: the same, of the batches of all ranks together (PyTorch's "
          "SyncBatchNorm); frozen: they keep the running statistics, and train scale and shift; "
          "file: each in the mode that the file has it in, which is the default where the file has "
          "both")
          .refused({"batch-norm=all-ranks target=cuda", "batch-norm-of=*=all-ranks target=cuda"},
                   "statistics of all ranks are for --target cpu alone so far",
                   "--batch-norm train, which takes those of each rank's batch"),
      listRow("batch-norm-of", "PATTERN=MODE", readBatchNormOf,
              "the mode of the batch norms whose module this regular expression matches"),
  };
}

std::vector<option_row> memoryRows() {
  return {
      sizeRow("limit-memory", &Options::limitMemory, "2GiB",
              "end with an error that names the largest tensors where a rank's memory plan takes "
              "more, such as 2GiB or 500MB; --stages cuts so that each stage fits, where it can")
          .idle(makesNoOutput()),
      sizeRow(
          "memory-budget", &Options::memoryBudget, "1.5GiB",
          "bytes that a rank's memory plan may take, such as 1.5GiB: the backward pass recomputes "
          "what does not fit, by the fastest plan found; an error says the least that can be met")
          .usual()
          .idle(kCurve, "has no effect with --memory-curve, which goes through budgets")
          .idle(hasStages()),
      row("recompute", &Options::recompute, "none|light|full",
          "what the backward pass recomputes instead of keeping it: light, what costs little time "
          "for its memory (activations, norms, attention weights); full, all that lowers the "
          "memory plan")
          .usual()
          .idle(kCurve, "has no effect with --memory-curve, which goes through budgets")
          .refused({"memory-budget recompute!=none"},
                   "contradicts --memory-budget, which chooses what is recomputed"),
      patternRow(row("recompute-pattern", &Options::recomputePatterns, "PATTERN",
                     "further nodes that the backward pass recomputes: a regular expression that "
                     "matches the whole name")),
      flag("memory-curve", &Options::memoryCurve,
           "print what less memory would cost: for some budgets the predicted time of a step, and "
           "stop")
          .idle(runsNoPass())
          .idle("check", "has no effect with --check, which stops by itself")
          .idle(hasStages()),
      listRow("run-with", "NAME=VALUE", readRunWith,
              "how the trainer will be started, which --memory-budget, --memory-curve and "
              "--limit-memory then count: ranks=N of a host, micro-batches=N, "
              "accumulation=running, shard=optimizer; default: one rank and one micro-batch")
          .idle(hasStages()),
      readBy(checkRowChunk,
             row("row-chunk", &Options::rowChunk, "SIZE",
                 "larger results of matrix products that are needed row by row, as logits are, are "
                 "computed in chunks of rows of this size (64MiB, for cuda 1GiB), 0: never")),
      row("frozen-type", ofRecipe<&Recipe::frozenType>, "file|bf16|fp16|int8|int4",
          "what frozen weights are kept in: file, the type that each has in the model's file; else "
          "floats of two or more axes are rounded to it, to int8 and int4 in blocks of 32 "
          "(docs/memory.md)")
          .refused({"frozen-type!=file target!=cpu", "frozen-type!=file library",
                    "frozen-type!=file precision=f64"},
                   "is of trainers for --target cpu alone so far, not of libraries or f64",
                   "--frozen-type file"),
      flag("update-in-backward", &Options::updatesInBackward,
           "update each parameter in the backward pass, as soon as its gradient is whole and "
           "nothing reads it any more: no memory for all gradients; for one rank and one "
           "micro-batch, without --clip-norm (docs/memory.md)"),
      flag("no-predictions", &Options::noPredictions,
           "leave the model's outputs out of evaluation: it has no memory for them, such as for "
           "logits, and the trainer has no `predict` and no `generate` (docs/memory.md)"),
      patternRow(row("keep", ofRecipe<&Recipe::kept>, "PATTERN",
                     "keep the values of nodes, and their gradients, in memory until the step "
                     "ends, so that `train --watch` sees them: a regular expression that matches "
                     "the whole `name` of a node in plan/plan.json"))
          .refused({"keep stages!=1"}, "keeps no values of a step in stages so far", "--stages 1"),
      readBy(checkShard, row("shard", &Options::shard, "none|gradients",
                             "what no rank of the trainer keeps whole: gradients, optimizer state "
                             "and, on the CPU, parameters; ranks keep a part each, with the same "
                             "bits (docs/sharding.md)"))
          .idle("library", "has no effect on a library, which has no ranks")
          .refused({"shard=gradients target=cuda stages!=1"},
                   "gradients of stages are shared out for --target cpu alone so far",
                   "--shard none")
          .refused({"update-in-backward shard"},
                   "with --update-in-backward: one rank has all parameters", "--shard none"),
  };
}

std::vector<option_row> stageRows() {
  return {
      row("stages", &Options::stages, "N",
          "cut the step into this many stages of a pipeline, each run by ranks of its own: where "
          "little crosses, so that the slowest is as fast as can be; trainc-inspect OUT schedule "
          "says where")
          .usual()
          .idle("library", "has no effect on a library, which has no ranks")
          .refused({"update-in-backward stages!=1"},
                   "with --update-in-backward: one rank has all parameters", "--stages 1"),
      row("cut", &Options::cuts, "NODE",
          "with --stages: cut after this node of the model instead, the others in its order; one "
          "for each cut")
          .idle("stages=1", "has no effect on a step of one stage", "--stages 2"),
      row("schedule", &Options::schedule, "gpipe|1f1b|interleaved|zb-h1",
          "order of micro-batches in the stages: gpipe, all forward, then all backward; 1f1b, in "
          "turn, so that a stage keeps no more of them than there are stages; interleaved, the "
          "same with several chunks of the model on each stage: less idle time, more messages; "
          "zb-h1, with weight gradients apart, which fill idle time")
          .idle("stages=1", "has no effect on a step of one stage", "--stages 2"),
      row("chunks-per-stage", &Options::chunksPerStage, "N",
          "with --schedule interleaved: parts of the model on each stage; part c is on stage c "
          "modulo --stages"),
      row("micro-batches", &Options::microBatches, "N",
          "with --stages: batches of a step that follow each other through the stages; default: "
          "four for each stage")
          .idle("stages=1", "has no effect on a step of one stage",
                "--micro-batches of the trainer; or --stages 2"),
  };
}

std::vector<option_row> outputRows() {
  return {
      row("o", &Options::output, "FOLDER",
          "output folder; default: the model's name without its ending")
          .usual()
          .idle(makesNoOutput()),
      row("precision", ofRecipe<&Recipe::precision>, "f32|bf16|fp16|f64",
          "bf16, fp16: matrix products read 16 bits and add in f32, with half the memory for what "
          "they read; parameters, gradients, losses and the optimizer stay f32; fp16 has more "
          "digits and less range, and scales the loss (docs/precision.md); f64: for tests")
          .usual()
          .refused({"library=minimal precision!=f32"},
                   "a minimal library computes in f32; found '{precision}'",
                   "--library, or --precision f32")
          .refused({"update-in-backward precision=fp16"},
                   "with --update-in-backward: a gradient that is out of range is found when "
                   "others have been used",
                   "--precision bf16"),
      row("export-type", ofRecipe<&Recipe::exportType>, "file|f32|bf16|fp16",
          "type of the parameters in exported models; file: as the model's file has them; bf16, "
          "fp16: half as many bytes, each parameter with a Cast to the f32 that the graph computes "
          "in (docs/precision.md)"),
      patternRow(
          row("keep-f32", ofRecipe<&Recipe::keptF32>, "PATTERN",
              "with --precision bf16 or fp16: matrix products of these nodes or modules stay f32: "
              "a regular expression that matches the whole `name` of a node in plan/plan.json"))
          .refused({"keep-f32 precision!=bf16|fp16"},
                   "no product is narrower with --precision {precision}", "--precision bf16"),
      row("target", ofRecipe<&Recipe::target>, "cpu|cuda",
          "what the trainer computes on: cpu, or cuda (NVIDIA GPUs; CUDA C++, cuBLASLt and NCCL)")
          .usual()
          .refused({"library=minimal target!=cpu"},
                   "a minimal library computes on the processor; found '{target}'",
                   "--library, or --target cpu")
          .refused({"update-in-backward target!=cpu"},
                   "with --update-in-backward: it is for --target cpu alone so far",
                   "--target cpu"),
      row("march", &Options::march, "NAME",
          "instruction set of the trainer, a -march name of the host compiler; native: this "
          "machine's, with --target-triple aarch64-... armv8-a")
          .idle("target!=cpu", "has no effect on a trainer for --target {target}")
          .refused({"target-triple march=native target-triple!=aarch64*"},
                   "native is this machine's, not one of '{target-triple}'",
                   "--march with a name that {target-triple}-g++ knows"),
      row("host-compiler", &Options::compiler, "PROGRAM", "C++ compiler for the emitted source")
          .idle(makesNoOutput())
          .idle(isNotCompiled()),
      row("nvcc", &Options::nvcc, "PROGRAM",
          "CUDA compiler for --target cuda; its headers and libraries are taken from beside it; "
          "nvcc: the one on PATH, else in /usr/local/cuda/bin")
          .idle(makesNoOutput())
          .idle(isNotCompiled())
          .idle(isOnCpu()),
      readBy(checkArchitectures, row("cuda-arch", &Options::cudaArchitectures, "LIST",
                                     "compute capabilities that --target cuda compiles for; the "
                                     "last one also as PTX for newer devices"))
          .idle(isOnCpu()),
      flag("no-epilogues", &Options::noEpilogues,
           "with --target cuda: keep biases, GELU and sums of gradients out of the library's "
           "matrix products")
          .idle(isOnCpu()),
      flag("source-only", &Options::sourceOnly, "stop with the emitted source; do not compile it")
          .idle(makesNoOutput()),
      row("library", &Options::library, "full|minimal",
          "also make library/libmodel_NAME.so, .a, model_NAME.h and model_NAME.pc in the output "
          "folder: the model as a C library, whose caller has the loop and the data "
          "(docs/library.md); minimal: no trainer, and a library of one thread without files, "
          "which needs libc and libm alone (docs/small_devices.md)")
          .optional_value()
          .usual()
          .idle(makesNoOutput())
          .refused({"update-in-backward library"},
                   "with --update-in-backward: a library's caller has the loop"),
      row("target-triple", &Options::targetTriple, "TRIPLE",
          "with --library=minimal: the processor and system of the library, such as "
          "aarch64-linux-gnu; compiled by TRIPLE-g++")
          .idle("library!=minimal", "has no effect without --library=minimal", "both"),
      flag("bundle", &Options::bundle,
           "copy the shared libraries that the trainer needs into trainer.libs beside it: the "
           "folder then runs on a bare system of the same instruction set with this one's C "
           "library or a newer one")
          .idle(makesNoOutput())
          .idle(isNotCompiled())
          .idle("library=minimal", "has no effect with --library=minimal, which makes no trainer"),
      row("depfile", &Options::depfile, "FILE",
          "write what the output was made from (the model, its external data, this compiler) as a "
          "rule that Make, Ninja and CMake read")
          .idle(makesNoOutput()),
      row("depfile-target", &Options::depfileTarget, "FILE",
          "target of that rule, if it is not the trainer")
          .idle(makesNoOutput())
          .idle("!depfile", "has no effect without --depfile", "--depfile FILE"),
  };
}

std::vector<option_row> engineerRows() {
  return {
      row("write-gradient-graph", &Options::gradientGraph, "FILE.onnx",
          "also write a step of training, with forward pass, gradients and update, as an ONNX "
          "graph of standard operators that other runtimes execute and viewers show: "
          "docs/gradient_graph.md")
          .idle(runsNoPass())
          .idle("check", "has no effect with --check, which stops by itself")
          .refused({"state-type!=f32 write-gradient-graph"},
                   "the update of the graph has states in f32", "--state-type f32")
          .refused({"update-in-backward write-gradient-graph"},
                   "with --update-in-backward: its update is one step"),
      row("dump-ir", &Options::dumpIr, "FOLDER",
          "write the IR after every pass into numbered files; the head of each says how to go on "
          "from it")
          .idle(runsNoPass()),
      row("stop-after", &Options::stopAfter, "PASS",
          "stop after this step: import, a pass of `trainc-opt --help`, or emit; writes nothing "
          "before emit")
          .idle(runsNoPass())
          .idle(stopsItself()),
      flag("print-ir", &Options::printIr, "print the IR where --stop-after stops")
          .idle(runsNoPass())
          .idle(stopsItself())
          .idle("!stop-after", "has no effect without --stop-after",
                "--stop-after with a pass before emit")
          .idle("stop-after=emit", "has no effect with --stop-after emit",
                "--stop-after with a pass before emit"),
  };
}

std::vector<option_row> messageRows() {
  return {
      flag("check", &Options::check,
           "print a table of everything that keeps the model from training, ending with what it "
           "still needs, and stop")
          .usual()
          .idle(runsNoPass()),
      flag("print-parameters", &Options::printParameters,
           "print which initializers are parameters and why, and stop")
          .usual(),
      flag("list-operators", &Options::listOperators,
           "print the ONNX operators that can be imported, and stop"),
      flag("print-documentation", &Options::printDocumentation,
           "print this table as Markdown, and stop")
          .idle("list-operators", "has no effect with --list-operators, which reads no model"),
      row("message-format", &Options::messageFormat, "text|json|sarif",
          "text, for people; json, an object a line; or sarif, one document: docs/messages.md"),
      readBy(checkAccepted, row("accept", &Options::accepted, "NAME",
                                "take the file as it stands where a warning or an error ends with "
                                "this name (see Findings below)")),
      flag("quiet", &Options::quiet, "print no progress, even on a terminal"),
  };
}

/// Whether a program that only runs the model forward has no use for it. What is of adapters says
/// so of --lora.
bool isOfTraining(const option_row &row) {
  return row.name == "write-gradient-graph" ||
         (is_contained({"training", "memory", "stages"}, row.group) &&
          !is_contained({"forward-only", "train-only", "lora-rank", "lora-alpha", "lora-dropout",
                         "limit-memory", "row-chunk"},
                        row.name));
}

std::vector<option_row> allRows() {
  std::vector<option_row> all;
  const std::pair<const char *, std::vector<option_row>> parts[] = {
      {"model", modelRows()},     {"training", trainingRows()}, {"memory", memoryRows()},
      {"stages", stageRows()},    {"output", outputRows()},     {"engineers", engineerRows()},
      {"messages", messageRows()}};
  for (const auto &[group, rows] : parts)
    for (option_row row : rows) {
      row.group = group;
      // Two options read no model, so that no other has an effect beside them.
      if (!is_contained({"list-operators", "print-documentation", "message-format", "quiet"},
                        row.name))
        row.conditions.insert(
            row.conditions.begin(),
            {idle("list-operators", "with --list-operators, which reads no model"),
             idle("print-documentation", "with --print-documentation, which reads no model")});
      if (isOfTraining(row))
        row.conditions.push_back(idle("forward-only",
                                      "on a program that only runs the model forward",
                                      "the command without it, or without --forward-only"));
      all.push_back(std::move(row));
    }
  return all;
}

} // namespace

const option_table &optionsOfTrainc() {
  static const option_table table({{"model", "The model"},
                                   {"training", "What is trained"},
                                   {"memory", "Memory"},
                                   {"stages", "Stages of a pipeline"},
                                   {"output", "What is built"},
                                   {"engineers", "For compiler engineers"},
                                   {"messages", "What is printed"}},
                                  allRows());
  return table;
}

} // namespace trainc
