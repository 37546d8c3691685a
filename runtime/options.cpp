// SPDX-License-Identifier: Apache-2.0
//
// The option table of a trainer, and what is made from it.
#include "runtime/options.h"

#include "runtime/failure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

namespace trainc {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr double any_count = 1e15; // exactly representable, more than any run takes

constexpr unsigned reads_data =
    command_train | command_evaluate | command_gradients | command_predict;
constexpr unsigned takes_part_of_data = command_train | command_evaluate | command_gradients;
constexpr unsigned reads_parameters =
    command_evaluate | command_gradients | command_predict | command_export | command_generate;
constexpr unsigned computes = reads_data | command_generate;

// Of a program without gradients.
constexpr unsigned forward_commands = command_predict | command_export | command_info;

constexpr command_row commands[] = {
    {command_train, "train", "train the model",
     "Trains for --steps steps (or --epochs passes over the data), prints the loss while it goes\n"
     "and writes checkpoints. One step takes --micro-batches batches on every rank.",
     "train --tokens text.bin --holdout 0.1 --steps 1000 --learning-rate 1e-3"},
    {command_evaluate, "evaluate", "print the mean loss over the data",
     "Runs the model forward over all samples, each once, in file order, and prints the mean "
     "loss.\n"
     "With --holdout, only the held-out last part of the data is used.",
     "evaluate --tokens text.bin --holdout 0.1"},
    {command_gradients, "gradients", "write the gradient of every parameter for one batch",
     "Computes loss and gradients of one batch and writes the gradients as safetensors, each "
     "under\n"
     "its parameter's ONNX name. The loss is printed and stands in the file's metadata. With\n"
     "several ranks or micro-batches both are means over the labels of that many batches.",
     "gradients --data input=x.npy --data labels=y.npy -o gradients.safetensors"},
    {command_predict, "predict", "write the model's outputs for every sample",
     "Runs the model forward over all samples, in file order, and writes its outputs as "
     "safetensors,\n"
     "each under its ONNX name. Labels are not needed. The last batch may be incomplete; an "
     "output\n"
     "without an axis of samples needs data of exactly one batch. Runs on one rank.",
     "predict --data input=x.npy -o outputs.safetensors"},
    {command_export, "export", "write the trained model as ONNX",
     "Writes the forward model with trained weights. Weights above 1.5 GB go to a file NAME.data\n"
     "beside it.",
     "export --checkpoint latest -o trained.onnx"},
    {command_generate, "generate", "let a byte-token language model write text",
     "Continues the prompt byte by byte. The model must take tokens [batch, length] and give "
     "logits\n"
     "[batch, length, vocabulary] with a vocabulary of at most 256; text longer than its window\n"
     "slides out at the front.",
     "generate --prompt 'The licence' --length 200 --temperature 0.8"},
    {command_checkpoints, "checkpoints", "list, verify or prune a run's checkpoints",
     "list: what there is. verify: reads all of each, compares checksums and looks for parameters "
     "that\n"
     "are not finite; exit status 4 where one is not sound. prune: removes what --keep, "
     "--keep-every "
     "and\n"
     "--keep-best do not keep; those that are not sound neither count nor go.",
     "checkpoints verify --run runs/gpt2-0001", "list|verify|prune"},
    {command_info, "info", "describe the compiled model",
     "Prints what the compiler built: model, "
     "inputs, outputs, memory and kernels.",
     "info"},
};

option_row row(const char *name, char letter, option_kind kind, const char *placeholder,
               const char *value, const char *help, unsigned commands, double minimum = 0,
               double maximum = any_count, const char *choices = "") {
  return {name, letter, kind, placeholder, value, help, commands, minimum, maximum, choices};
}

std::vector<option_row> common_rows() {
  using kind = option_kind;
  return {
      row("data", 0, kind::list, "NAME=FILE", "",
          "data of one model input: FILE.npy or FILE.safetensors:TENSOR; the first axis counts\n"
          "samples; a pattern ('x-*.npy') joins its files in natural order; repeat for every input",
          reads_data),
      row("constant", 0, kind::list, "NAME=FILE", "",
          "an input that is the same for every batch, of the input's whole shape", reads_data),
      row("tokens", 0, kind::files, "FILE[:WEIGHT]", "",
          "text or tokens for a language model: windows of a flat file (raw integers, llm.c's "
          ".bin,\n"
          ".npy, a pattern of several); labels are the same tokens shifted by one; repeated, "
          "samples\n"
          "come from all files, or from each in the share of its WEIGHT",
          reads_data),
      row("token-type", 0, kind::text, "TYPE", "auto",
          "type of a raw token file; auto: what trainc-data wrote beside it, else bytes",
          reads_data, 0, 0, "auto|u8|u16|u32|i32"),
      row("holdout", 0, kind::real, "FRACTION", "0",
          "last part of the data, kept from training; evaluate uses only this part",
          takes_part_of_data, 0, 0.999),
      row("validation-data", 0, kind::list, "NAME=FILE", "",
          "data that --evaluate-every uses instead of a held-out part; repeat for every input",
          command_train),
      row("validation-tokens", 0, kind::files, "FILE", "",
          "the same for a language model, of the type of --tokens", command_train),
      row("validation-batches", 0, kind::integer, "N", "0",
          "--evaluate-every uses the first N batches only; 0: all", command_train),
      row("overfit", 0, kind::integer, "N", "0",
          "train on the first N batches of the data alone, again and again; 0: on all",
          command_train),
      row("initialise", 0, kind::text, "FILE", "",
          "begin with what a safetensors file has of the parameters, by their ONNX names",
          command_train),
      row("steps", 0, kind::integer, "N", "", "steps to train, counted from the very first one",
          command_train, 1),
      row("epochs", 0, kind::real, "N", "", "instead of --steps: passes over the data",
          command_train, 1e-9),
      row("learning-rate", 0, kind::real, "RATE", "0.001", "rate after warm-up", command_train, 0,
          unbounded),
      row("schedule", 0, kind::text, "KIND", "constant", "how the rate goes on after warm-up",
          command_train, 0, 0,
          "constant|linear|cosine|cosine-restarts|polynomial|inverse-sqrt|warmup-stable-decay|step|"
          "exponential"),
      row("warmup-steps", 0, kind::integer, "N", "0", "steps over which the rate rises from zero",
          command_train),
      row("final-learning-rate", 0, kind::real, "RATE", "0",
          "rate that linear, cosine, polynomial and warmup-stable-decay end at", command_train, 0,
          unbounded),
      row("schedule-steps", 0, kind::integer, "N", "",
          "length of the schedule, where it is not the number of steps", command_train, 1),
      row("schedule-power", 0, kind::real, "P", "1", "exponent of the polynomial schedule",
          command_train, 0, 1000),
      row("cycle-steps", 0, kind::integer, "N", "", "cosine-restarts: steps of the first cycle",
          command_train, 1),
      row("cycle-factor", 0, kind::real, "X", "1",
          "cosine-restarts: length of a cycle over that of the one before", command_train, 1, 1000),
      row("decay-steps", 0, kind::integer, "N", "",
          "warmup-stable-decay: steps at the end over which the rate falls", command_train, 1),
      row("decay-every", 0, kind::integer, "N", "", "step: steps between two falls of the rate",
          command_train, 1),
      row("decay-factor", 0, kind::real, "X", "",
          "step: factor of each fall (0.1 unless given); exponential: of each step", command_train,
          0, 1),
      row("micro-batches", 0, kind::integer, "N", "1",
          "batches per step and rank, whose gradients are added up",
          command_train | command_gradients, 1, 65536),
      row("clip-norm", 0, kind::real, "NORM", "inf", "largest global norm of the gradient",
          command_train, 1e-300, unbounded),
      row("mean-per-batch", 0, kind::flag, "", "",
          "the loss is the mean of the batches' means, as PyTorch's data parallelism has it, and "
          "not\n"
          "of all labels of the step; they differ where batches have other numbers of ignored "
          "labels",
          command_train | command_gradients),
      row("nonfinite-limit", 0, kind::integer, "N", "10",
          "end the run after so many steps in a row whose loss or gradient is not finite; such a\n"
          "step is skipped",
          command_train, 1),
      row("leftovers", 0, kind::text, "POLICY", "drop",
          "samples of an epoch that fill no batch: left out; the last batch filled up with rows "
          "that\n"
          "do not count (labels that are ignored); or completed with the next epoch's first",
          command_train, 0, 0, "drop|pad|wrap"),
      row("no-shuffle", 0, kind::flag, "", "", "take samples in the order of the files",
          command_train),
      row("seed", 0, kind::integer, "N", "0", "seed of every random choice",
          command_train | command_gradients | command_generate),
      row("evaluate-every", 0, kind::integer, "N", "0",
          "print the loss on the held-out part every N steps; 0: never", command_train),
      row("batches", 0, kind::integer, "N", "0", "use the first N batches only; 0: all",
          command_evaluate),
      row("batch", 0, kind::integer, "K", "0", "which batch, in file order", command_gradients),
      row("step", 0, kind::integer, "N", "1",
          "of which training step the model's random numbers are", command_gradients, 1),
      row("run", 0, kind::text, "DIR", "",
          "folder of the run: configuration.json, log.jsonl (a line a step), checkpoints/\n"
          "(default: train begins the next of runs/MODEL-0001, ...; other commands read the "
          "newest)",
          command_train | reads_parameters | command_checkpoints),
      row("dry-run", 0, kind::flag, "", "",
          "check everything, take the memory and one step, keep nothing", command_train),
      row("overwrite", 0, kind::flag, "", "", "give up the run that --run holds", command_train),
      row("config", 0, kind::text, "FILE", "",
          "options of a configuration.json; the command line goes before them", command_train),
      row("no-checkpoints", 0, kind::flag, "", "", "write no checkpoint", command_train),
      row("no-background", 0, kind::flag, "", "",
          "training waits while a checkpoint is written: it takes no memory for a copy of "
          "parameters "
          "and states",
          command_train),
      row("checkpoint-every", 0, kind::period, "PERIOD", "10min",
          "write a checkpoint every N steps, Nmin or Nepochs; 0: only at the end", command_train),
      row("keep", 0, kind::integer, "N", "2", "how many of the newest checkpoints stay",
          command_train | command_checkpoints, 1, 10000),
      row("keep-every", 0, kind::integer, "K", "0", "those of every K steps stay besides; 0: none",
          command_train | command_checkpoints),
      row("keep-best", 0, kind::text, "METRIC", "",
          "the one with the lowest METRIC stays besides; with held-out-loss, one is written "
          "whenever\n"
          "an evaluation is the best so far",
          command_train | command_checkpoints, 0, 0, "loss|held-out-loss"),
      row("resume", 0, kind::text, "WHICH", "",
          "go on with a run and its options: latest (the newest checkpoint of --run, else of\n"
          "the newest run), auto (the same, or begin where there is no run) or the path of a\n"
          "checkpoint; with another --run, a new run branches off there",
          command_train),
      row("new-data", 0, kind::flag, "", "",
          "resume although the data are not those of the run; their order begins anew",
          command_train),
      row("max-time", 0, kind::real, "MINUTES", "",
          "end with a checkpoint after this time, whatever the steps", command_train, 1e-9),
      row("checkpoint", 0, kind::text, "WHICH", "latest",
          "parameters to use: latest of --run, a path, or initial", reads_parameters),
      row("output", 'o', kind::text, "FILE", "", "file to write",
          command_gradients | command_predict | command_export),
      row("external-data", 0, kind::flag, "", "", "put the weights into NAME.data at any size",
          command_export),
      row("prompt", 0, kind::text, "TEXT", "\n", "text to continue", command_generate),
      row("length", 0, kind::integer, "N", "200", "bytes to write", command_generate, 1),
      row("temperature", 0, kind::real, "T", "1",
          "below 1: likelier bytes preferred; 0: always the likeliest", command_generate, 0, 1000),
      row("top-k", 0, kind::integer, "K", "0", "choose among the K likeliest; 0: all",
          command_generate),
      row("json", 0, kind::flag, "", "", "print the result as one JSON line",
          command_evaluate | command_info | command_checkpoints),
      row("hang-timeout", 0, kind::real, "SECONDS", "60",
          "end the job when a rank gives no sign of life for so long, or its host waits for it\n"
          "so long and five times a step; 0: wait for ever",
          computes, 0, 1e9),
      row("no-progress", 0, kind::flag, "", "", "print no progress bar and no line per step",
          command_train),
  };
}

// Of trainers for the CPU.
std::vector<option_row> cpu_rows() {
  using kind = option_kind;
  return {
      row("threads", 0, kind::integer, "N", "",
          "threads per rank (default: OMP_NUM_THREADS, else the host's cores divided by its ranks)",
          computes, 1, 4096),
      row("communication", 0, kind::text, "KIND", "auto",
          "between ranks of one host: shared memory or messages; both give the same bits",
          command_train | command_gradients, 0, 0, "auto|shared|messages"),
  };
}

// Of trainers for CUDA.
std::vector<option_row> cuda_rows() {
  using kind = option_kind;
  return {
      row("math", 0, kind::text, "KIND", "ieee",
          "f32 matrix products: exact operands, or operands rounded to TF32 (faster)", computes, 0,
          0, "ieee|tf32"),
      row("no-tuning", 0, kind::flag, "", "",
          "do not measure algorithms for matrix products, take the first that fits", computes),
      row("product-choices", 0, kind::text, "FILE", "",
          "where chosen algorithms are kept, so that later runs give the same bits\n"
          "(default: `product_choices.txt` beside the trainer); none: nowhere",
          computes),
  };
}

// Options of one start, which a resumed run does not take over.
constexpr const char *of_one_start[] = {
    "run",      "overwrite",       "config",      "resume",  "initialise",
    "dry-run",  "new-data",        "no-progress", "threads", "communication",
    "max-time", "product-choices", "hang-timeout"};

// Options in which ranks may differ: of their machine, of the terminal, and paths of data, whose
// contents are compared.
constexpr const char *of_one_rank[] = {
    "threads",  "no-progress", "product-choices", "data",
    "constant", "tokens",      "validation-data", "validation-tokens"};

int edit_distance(const std::string &a, const std::string &b) {
  std::vector<int> previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j)
      current[j] = std::min(
          {previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
    std::swap(previous, current);
  }
  return previous[b.size()];
}

bool to_number(const std::string &text, double &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !std::isnan(value);
}

bool is_choice(const std::string &choices, const std::string &value) {
  return ("|" + choices + "|").find("|" + value + "|") != std::string::npos &&
         value.find('|') == std::string::npos && !value.empty();
}

// An explanation of what is wrong with the value, or nothing.
std::string complaint(const option_row &option, const std::string &value) {
  std::string start = "option --" + option.name + ": ";
  if (option.kind == option_kind::integer || option.kind == option_kind::real) {
    double number;
    if (!to_number(value, number))
      return start + "'" + value + "' is not a number";
    if (option.kind == option_kind::integer && number != std::floor(number))
      return start + "'" + value + "' is not a whole number";
    if (number < option.minimum || number > option.maximum)
      return start + value +
             format_text(number < option.minimum ? " is below %g" : " is above %g",
                         number < option.minimum ? option.minimum : option.maximum);
  }
  if (period every; option.kind == option_kind::period && !to_period(value, every))
    return start + "'" + value + "' is no period\n  try: 100 (steps), 10min or 0.5epochs";
  if (!option.choices.empty() && !is_choice(option.choices, value))
    return start + "'" + value + "' is none of " + option.choices;
  if (option.kind == option_kind::list &&
      (value.find('=') == std::string::npos || value.find('=') == 0 || value.back() == '='))
    return start + "'" + value + "' does not have the form " + option.placeholder;
  bool is_text = option.kind == option_kind::text || option.kind == option_kind::files;
  if (is_text && value.empty() && option.name != "prompt")
    return start + "is empty";
  return "";
}

std::string indented(const std::string &text, size_t column) {
  std::string result;
  for (char c : text) {
    result += c;
    if (c == '\n')
      result.append(column, ' ');
  }
  return result;
}

// A run may go on with another target, where the options of the first mean nothing.
bool is_of_another_target(const std::string &name) {
  for (const auto &rows : {cpu_rows(), cuda_rows()})
    for (const option_row &option : rows)
      if (option.name == name)
        return true;
  return false;
}

// A path that holds in another working directory too.
std::string kept_value(const option_row &option, const std::string &value) {
  bool is_path = option.placeholder == "FILE" || option.placeholder == "DIR";
  if ((!is_path && !repeats(option.kind)) || value == "none")
    return value;
  size_t start = option.kind == option_kind::list ? value.find('=') + 1 : 0;
  std::error_code ignored;
  return value.substr(0, start) + std::filesystem::absolute(value.substr(start), ignored).string();
}

} // namespace

std::vector<std::string> kept_values(const option_row &option, std::vector<std::string> values) {
  for (std::string &value : values)
    value = kept_value(option, value);
  return values;
}

std::string option_name(const hyperparameter &value) {
  std::string name = value.name;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const std::vector<std::string> *settings::values(const std::string &name) const {
  for (const auto *source : {&given_, &restored_})
    if (auto found = source->find(name); found != source->end())
      return &found->second;
  return nullptr;
}

const std::string &settings::text(const std::string &name) const {
  const std::vector<std::string> *found = values(name);
  return found ? found->back() : defaults_.at(name);
}

int64_t settings::integer(const std::string &name) const {
  return static_cast<int64_t>(real(name));
}

double settings::real(const std::string &name) const {
  double value = 0;
  to_number(text(name), value);
  return value;
}

period settings::every(const std::string &name) const {
  period value;
  to_period(text(name), value);
  return value;
}

std::vector<std::string> settings::list(const std::string &name) const {
  const std::vector<std::string> *found = values(name);
  return found ? *found : std::vector<std::string>();
}

option_table::option_table(const program &program)
    : model_name_(program.model_name), commands_(program.forward_backward ? ~0u : forward_commands),
      rows_(common_rows()) {
  for (const option_row &option :
       std::strcmp(program.target, "cuda") == 0 ? cuda_rows() : cpu_rows())
    rows_.push_back(option);
  if (!program.forward_backward) // there are no runs
    for (option_row &option : rows_)
      if (option.name == "checkpoint")
        option.default_value = "initial";
  for (int64_t i = 0; i < program.hyperparameter_count; ++i) {
    const hyperparameter &value = program.hyperparameters[i];
    char text[32];
    auto end = std::to_chars(text, text + sizeof text, value.default_value).ptr;
    option_row option = {option_name(value),
                         0,
                         option_kind::real,
                         "X",
                         std::string(text, end),
                         std::string(value.help) + " (" + program.optimizer_name + ")",
                         command_train,
                         -unbounded,
                         unbounded,
                         ""};
    if (!find(option.name, ~0u))
      rows_.push_back(option);
  }
  for (option_row &option : rows_)
    option.of_start = std::find(std::begin(of_one_start), std::end(of_one_start), option.name) !=
                      std::end(of_one_start);
}

const option_row *option_table::find(const std::string &name, unsigned commands) const {
  for (const option_row &option : rows_)
    if ((option.commands & commands) &&
        (option.name == name || (name.size() == 1 && option.letter == name[0])))
      return &option;
  return nullptr;
}

std::string option_table::nearest(const std::string &name, unsigned commands) const {
  std::string best;
  int distance = std::max<int>(2, static_cast<int>(name.size()) / 3) + 1;
  for (const option_row &option : rows_)
    if (option.commands & commands)
      if (int edits = edit_distance(name, option.name); edits < distance) {
        distance = edits;
        best = option.name;
      }
  return best;
}

const command_row *option_table::known(const std::string &word) const {
  for (const command_row &candidate : commands)
    if (word == candidate.name)
      return &candidate;
  return nullptr;
}

std::string option_table::command_list() const {
  std::string list;
  for (const command_row &command : commands)
    if (command.bit & commands_)
      list += std::string(command.name) + ", ";
  return list + "help";
}

settings option_table::parse(int count, const char *const *arguments) const {
  settings result;
  problem_list problems;
  std::string word = count > 0 ? arguments[0] : "help";
  if (word == "help" || word == "--help" || word == "-h") {
    result.wants_help = true;
    if (count < 2)
      return result;
    word = arguments[1];
  }
  result.command = known(word);
  if (!result.command)
    throw failure(exit_usage, "unknown command '" + word + "'\n  try: " + command_list());
  if (!(result.command->bit & commands_))
    throw failure(exit_usage,
                  "the model was compiled with --forward-only, so this program cannot " + word +
                      "\n  try: " + command_list() + "; or trainc without --forward-only");
  if (result.wants_help)
    return result;

  unsigned bit = result.command->bit;
  for (const option_row &option : rows_)
    if (option.commands & bit)
      result.defaults_[option.name] = option.default_value;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      result.wants_help = true;
      return result;
    }
    if (i == 1 && is_choice(result.command->actions, argument)) {
      result.action_ = argument;
      continue;
    }
    size_t dashes = argument.rfind("--", 0) == 0 ? 2 : argument.rfind('-', 0) == 0 ? 1 : 0;
    if (dashes == 0) {
      problems.add("unexpected argument '" + argument + "'");
      continue;
    }
    size_t equals = argument.find('=');
    std::string name =
        argument.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    const option_row *option = (dashes == 1) == (name.size() == 1) ? find(name, bit) : nullptr;
    if (!option) {
      std::string near = nearest(name, bit);
      problems.add("unknown option '" + argument.substr(0, equals) + "' of " +
                   result.command->name +
                   (near.empty() ? "\n  try: " + std::string(result.command->name) + " --help"
                                 : "\n  try: --" + near));
      // What follows an unknown option is most likely its value.
      if (equals == std::string::npos && i + 1 < count && arguments[i + 1][0] != '-')
        ++i;
      continue;
    }
    std::string value;
    if (option->kind == option_kind::flag) {
      value = equals == std::string::npos ? "yes" : argument.substr(equals + 1);
      if (value != "yes" && value != "no") // `no` undoes what a resumed run has
        problems.add("option --" + option->name + ": takes no value");
    } else if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < count) {
      value = arguments[++i];
    } else {
      problems.add("option --" + option->name + ": needs a value " + option->placeholder);
      continue;
    }
    if (std::string problem = complaint(*option, value); !problem.empty())
      problems.add(problem);
    auto &values = result.given_[option->name];
    if (!values.empty() && !repeats(option->kind))
      problems.add("option --" + option->name + ": given twice");
    values.push_back(value);
  }
  if (*result.command->actions && result.action_.empty())
    problems.add(std::string(result.command->name) + ": needs one of " + result.command->actions +
                 "\n  try: " + result.command->example);
  problems.throw_if_any(exit_usage);
  return result;
}

std::string option_table::overview() const {
  bool trains = commands_ & command_train;
  std::string text = (trains ? "Trains the model '" : "Runs the model '") + model_name_ +
                     "' that this program was compiled from.\n" +
                     (trains ? "Start it alone, or as several ranks: mpirun -n 4 trainer train "
                               "...\n\n"
                             : "\n") +
                     "usage: trainer COMMAND [options]\n\n";
  for (const command_row &command : commands)
    if (command.bit & commands_)
      text += format_text("  %-10s %s\n", command.name, command.summary);
  text += "\n`trainer COMMAND --help` lists the options of a command.\n\nExit status:\n";
  for (const exit_code_row &code : exit_code_table)
    text += format_text("  %d  %s\n", code.code, code.meaning);
  return text;
}

std::string option_table::help_of(const command_row &command) const {
  constexpr int column = 32;
  std::string action = *command.actions ? std::string(" ") + command.actions : "";
  std::string text =
      format_text("usage: trainer %s%s [options]\n\n%s\n\nexample: trainer %s\n\n", command.name,
                  action.c_str(), command.description, command.example);
  for (const option_row &option : rows_) {
    if (!(option.commands & command.bit))
      continue;
    std::string left = "  --" + option.name;
    if (option.letter)
      left = std::string("  -") + option.letter + ", --" + option.name;
    if (option.kind != option_kind::flag)
      left += " " + option.placeholder;
    std::string right = option.help;
    if (!option.choices.empty())
      right += ": " + option.choices;
    if (!option.default_value.empty() && option.name != "prompt")
      right += " (default " + option.default_value + ")";
    if (left.size() >= column - 1)
      left += "\n" + std::string(column, ' ');
    else
      left.append(column - left.size(), ' ');
    text += left + indented(right, column) + "\n";
  }
  text += "\nExit status:\n";
  for (const exit_code_row &code : exit_code_table)
    text += format_text("  %d  %s\n", code.code, code.meaning);
  if (command.bit == command_train)
    text += "\nSIGUSR1 asks for a checkpoint; SIGTERM or SIGINT for a checkpoint and the end.\n"
            "mpirun kills its ranks one second after a SIGTERM of its own; give it\n"
            "--mca odls_base_sigkill_timeout SECONDS where a step and a checkpoint take longer.\n";
  return text;
}

std::vector<std::pair<std::string, std::string>>
option_table::values(const settings &settings) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const option_row &option : rows_) {
    if (!(option.commands & settings.command->bit))
      continue;
    std::string value;
    if (repeats(option.kind))
      for (const std::string &item : settings.list(option.name))
        value += (value.empty() ? "" : " ") + item;
    else
      value = settings.text(option.name);
    if (option.kind == option_kind::flag && value.empty())
      value = "no";
    result.emplace_back(option.name, value);
  }
  return result;
}

std::vector<std::pair<std::string, std::string>>
option_table::shared_values(const settings &settings) const {
  auto rows = values(settings);
  auto is_of_rank = [](const auto &row) {
    return std::find(std::begin(of_one_rank), std::end(of_one_rank), row.first) !=
           std::end(of_one_rank);
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), is_of_rank), rows.end());
  return rows;
}

std::vector<const option_row *> option_table::of_run(const command_row &command) const {
  std::vector<const option_row *> result;
  for (const option_row &option : rows_)
    if ((option.commands & command.bit) && !option.of_start)
      result.push_back(&option);
  return result;
}

std::vector<changed_option>
option_table::restore(std::map<std::string, std::vector<std::string>> configuration,
                      const std::string &source, settings &settings, problem_list &problems) const {
  // Two ways to say how long: the command line's replaces the other.
  for (auto [one, other] : {std::pair("steps", "epochs"), std::pair("epochs", "steps")})
    if (settings.given(one))
      configuration.erase(other);
  std::vector<changed_option> changes;
  for (auto &[name, values] : configuration) {
    const option_row *option = find(name, settings.command->bit);
    if (!option && is_of_another_target(name))
      continue;
    if (!option || option->name != name) {
      std::string near = nearest(name, settings.command->bit);
      problems.add(source + ": unknown option '" + name + "'" +
                   (near.empty() ? "" : "\n  try: " + near));
      continue;
    }
    if (option->of_start)
      continue;
    for (const std::string &value : values)
      if (std::string problem = complaint(*option, value); !problem.empty())
        problems.add(source + ": " + problem);
    if (values.size() > 1 && !repeats(option->kind))
      problems.add(source + ": option '" + name + "' takes one value");
    auto now = settings.given_.find(name);
    if (now == settings.given_.end())
      settings.restored_[name] = values;
    else if (kept_values(*option, now->second) != values)
      changes.push_back({name, values, now->second});
  }
  return changes;
}

} // namespace trainc
