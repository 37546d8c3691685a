// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/trainer_table.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/switches.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <filesystem>

namespace trainc {
namespace {

// Of a program without gradients.
constexpr unsigned forward_commands = command_predict | command_export | command_info;

// Of a value that is text, the words which this program knows.
option_row limited_to(const std::vector<std::string> &words, option_row option) {
  option.choices = joined(words, "|");
  const std::string choices = option.choices;
  return std::move(option).checked([=](const std::string &text) {
    return is_choice(choices, text) ? std::string() : "'" + text + "' is none of " + choices;
  });
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Names an input and its file.
bool names_input(const option_row &option) { return option.placeholder == "NAME=FILE"; }

} // namespace

std::string read_value(const std::string &text, value_range, period &value) {
  return to_period(text, value)
             ? ""
             : "'" + text + "' is not a period\n  try: 100 (steps), 10min or 0.5epochs";
}

// Steps are counted from 1.
std::string read_value(const std::string &text, value_range range, step_range &value) {
  const size_t colon = std::min(text.find(':'), text.size());
  step_range found;
  if (colon == text.size() || !read_value(text.substr(0, colon), range, found.begin).empty() ||
      !read_value(text.substr(colon + 1), range, found.end).empty())
    return "'" + text + "' is not a range of steps\n  try: 10:12, for the steps 10 and 11";
  if (found.begin < 1 || found.end <= found.begin)
    return text + " has no step: it ends before " + text_of(found.end) +
           "\n  try: " + text_of(std::max<int64_t>(found.begin, 1)) + ":" +
           text_of(std::max<int64_t>(found.begin, 1) + 1);
  if (found.end - found.begin > most_steps_of_range)
    return text +
           format_text(" has more than %lld steps", static_cast<long long>(most_steps_of_range));
  value = found;
  return "";
}

std::string text_of(const period &value) {
  const char *unit = value.of == period::minutes  ? "min"
                     : value.of == period::epochs ? "epochs"
                                                  : "";
  return text_of(value.count) + unit;
}

std::string text_of(const step_range &value) {
  return text_of(value.begin) + ":" + text_of(value.end);
}

std::string option_name(const hyperparameter &value) { return dashed(value.name); }

std::vector<std::string> trainer_table::kept_values(const option_row &option,
                                                    const trainer_options &options) const {
  std::vector<std::string> texts = option.texts(&options);
  bool is_path = option.is_list || option.placeholder == "FILE" || option.placeholder == "DIR";
  for (std::string &text : texts) {
    if (!is_path || text.empty() || text == "none")
      continue;
    const std::string file = names_input(option) ? named_file_of(program_, text).file : text;
    std::error_code ignored; // a path that holds in another working directory too
    text.replace(text.size() - file.size(), std::string::npos,
                 std::filesystem::absolute(file, ignored).string());
  }
  return texts;
}

trainer_table::trainer_table(const program &program)
    : program_(program),
      commands_(program.forward_backward || program.stages ? ~0u : forward_commands) {
  groups_ = {{"data", "Data"},
             {"training", "Training"},
             {"rate", "Learning rate and optimizer"},
             {"run", "The run and its checkpoints"},
             {"evaluation", "Evaluation and samples"},
             {"result", "What is written"},
             {"watch", "What is watched and printed"},
             {"machine", "The machine"}};
  rows_ = common_rows();
  add_program_rows();
  if (!program.forward_backward && !program.stages) // there are no runs
    defaults_.checkpoint = "initial";
  if (program.stages)
    defaults_.micro_batches = program.stages->micro_batches;
  if (program.shards_gradients)
    defaults_.shard = shard_kind::gradients;
}

void trainer_table::add_program_rows() {
  for (option_row &option : rows_) {
    if (option.name == "keep-best")
      option = limited_to(names_of_metrics(program_), std::move(option));
    if (names_input(option))
      std::move(option).checked([&program = program_](const std::string &text) {
        const named_file parts = named_file_of(program, text);
        return parts.name.empty() || parts.file.empty()
                   ? "'" + text + "' does not have the form NAME=FILE"
                   : "";
      });
  }
  auto add = [&](std::vector<option_row> rows) {
    std::move(rows.begin(), rows.end(), std::back_inserter(rows_));
  };
  add(std::strcmp(program_.target, "cuda") == 0 ? cuda_rows() : cpu_rows());
  if (program_.loss_scale_offset >= 0)
    add(loss_scale_rows());
  for (int64_t i = 0; i < std::ssize(program_.hyperparameters); ++i) {
    const hyperparameter &value = program_.hyperparameters[i];
    defaults_.hyperparameters.push_back(value.follows ? std::nullopt
                                                      : std::optional(value.default_value));
    auto place = [i](auto &options) -> auto & {
      return options.hyperparameters[static_cast<size_t>(i)];
    };
    const bool is_rate = value.follows && std::strcmp(value.follows, "learning_rate") == 0;
    const std::string source = value.follows ? "default: --" + dashed(value.follows)
                                             : std::string(program_.optimizer_name);
    if (find(option_name(value), command_train))
      continue;
    rows_.push_back(option_of<trainer_options>(option_name(value), place, is_rate ? "RATE" : "X",
                                               command_train,
                                               std::string(value.help) + " (" + source + ")")
                        .within({value.least, value.limit, value.may_be_limit}));
    rows_.back().group = "rate";
  }
}

const command_row &trainer_table::known(const std::string &word) const {
  for (const command_row &candidate : all_commands()) {
    if (word != candidate.name)
      continue;
    if (candidate.bit & commands_)
      return candidate;
    throw failure(exit_usage,
                  "the model was compiled with --forward-only, so this program cannot " + word +
                      "\n  try: " + command_list() + "; or trainc without --forward-only");
  }
  throw failure(exit_usage, "unknown command '" + word + "'\n  try: " + command_list());
}

std::string trainer_table::command_list() const {
  std::string list;
  for (const command_row &command : all_commands())
    if (command.bit & commands_)
      list += std::string(command.name) + ", ";
  return list + "help";
}

std::string trainer_table::said(const option_problem &problem, const command_row &command) const {
  const std::string other = std::string(command.name) + " --help";
  if (problem.is_unknown && problem.option == "--ema" && command.bit == command_train)
    return "unknown option '--ema' of train: the program keeps no moving average\n  try: trainc "
           "--ema";
  if (problem.is_unknown)
    return with_advice("unknown option '" + problem.option + "' of " + command.name,
                       problem.advice == "--help" ? other : problem.advice);
  return with_advice("option " + problem.option + ": " + problem.message, problem.advice);
}

trainer_options trainer_table::parse(int count, const char *const *arguments) const {
  trainer_options result = defaults_;
  if (count == 0)
    throw failure(exit_usage, overview() + "\nno command given\n  try: " + command_list());
  const std::string word = arguments[0];
  result.wants_version = word == "--version";
  result.wants_help = result.wants_version || word == "help" || word == "--help" || word == "-h";
  if (result.wants_help &&
      (result.wants_version || count == 1 || arguments[1] == std::string("all")))
    return result;
  result.command = &known(result.wants_help ? arguments[1] : word);
  if (result.wants_help)
    return result;
  const command_row &command = *result.command;
  const command_line line = option_table::parse(count - 1, arguments + 1, &result, command.bit);
  result.wants_help = line.wants_help;
  result.help_of = line.help_of;
  if (line.wants_help)
    return result;
  result.given = line.given;
  problem_list problems;
  if (line.wants_version)
    problems.add("unknown option '--version'");
  for (const option_problem &problem : line.problems)
    problems.add(said(problem, command));
  for (const std::string &other : line.words)
    if (result.action.empty() && is_choice(command.actions, other))
      result.action = other;
    else
      problems.add("unexpected argument '" + other + "'");
  if (*command.actions && result.action.empty())
    problems.add(std::string(command.name) + ": needs one of " + command.actions +
                 "\n  try: " + command.example);
  problems.throw_if_any(exit_usage);
  return result;
}

void trainer_table::check(const trainer_options &options) const {
  constexpr int64_t longest_sample = 1 << 30; // bytes
  problem_list problems;
  if (options.steps.has_value() == options.epochs.has_value())
    problems.add(options.steps ? "train: takes --steps or --epochs, not both"
                               : "train: needs --steps or --epochs\n  try: --steps 1000");
  for (const option_problem &problem : refused(
           &options,
           [&](const std::string &option, const std::string &other) {
             return options.asks_for(option, other);
           },
           command_train))
    problems.add(said(problem, *options.command));
  if (options.sample_every > 0 && options.length > longest_sample)
    problems.add(format_text("option --length: %" PRId64 " bytes are more than a sample has, which "
                             "is held in memory\n  try: --length %" PRId64 " or less",
                             options.length, longest_sample));
  check_switches(
      program_,
      [&](int64_t i) {
        return options.hyperparameters[static_cast<size_t>(i)].value_or(
            program_.hyperparameters[i].default_value);
      },
      [&](int64_t i) { return "--" + option_name(program_.hyperparameters[i]); },
      [&](const std::string &text) { problems.add("option " + text); });
  problems.throw_if_any(exit_usage);
}

std::string trainer_table::overview() const {
  bool trains = commands_ & command_train;
  std::string text = std::string(trains ? "Trains the model '" : "Runs the model '") +
                     program_.model_name + "' that this program was compiled from.\n" +
                     (trains ? "Start it alone, or as several ranks: mpirun -n 4 trainer train "
                               "...\n\n"
                             : "\n") +
                     "usage: trainer COMMAND [options]\n\n";
  for (const command_row &command : all_commands())
    if (command.bit & commands_)
      text += format_text("  %-10s %s\n", command.name, command.summary);
  text +=
      "\n`trainer COMMAND --help` lists the options of a command, `trainer --version` says what\n"
      "compiled it.\n\nExit status:\n";
  for (const exit_code_row &code : exit_code_table)
    text += format_text("  %d  %s\n", code.code, code.meaning);
  return text;
}

std::string trainer_table::version() const {
  return format_text("trainer of '%s', compiled by trainc %s for %s, %s\n", program_.model_name,
                     program_.compiler_version, program_.target, program_.march);
}

std::string trainer_table::help_of(const command_row &command, const std::string &which) const {
  const std::string name = command.name,
                    action = *command.actions ? std::string(" ") + command.actions : "";
  // Other commands have few options.
  const std::string shown = which.empty() && command.bit != command_train ? "all" : which;
  std::string text;
  if (which.empty() || which == "all")
    text = "usage: trainer " + name + action + " [options]\n\n" + command.description +
           "\n\nexample: trainer " + command.example + "\n\n";
  text += help(shown, &defaults_, command.bit, "trainer " + name + " --help");
  if (shown != "all")
    return text;
  text += "Exit status:\n";
  for (const exit_code_row &code : exit_code_table)
    text += format_text("  %d  %s\n", code.code, code.meaning);
  if (command.bit == command_train)
    text += "\nOf one start, and not kept with the run:" + options_of_one_start() + "\n";
  if (command.bit == command_train)
    text += "\n--FLAG=no takes back an option without a value that a resumed run has.\n"
            "\nSIGUSR1 asks for a checkpoint; SIGTERM or SIGINT for a checkpoint and the end.\n"
            "mpirun kills its ranks one second after a SIGTERM of its own; give it\n"
            "--mca odls_base_sigkill_timeout SECONDS where a step and a checkpoint take longer.\n";
  return text;
}

// In lines, each after a blank.
std::string trainer_table::options_of_one_start() const {
  constexpr size_t width = 78;
  std::string text, line = std::string(width, ' ');
  for (const option_row &option : rows_) {
    if (!(option.commands & command_train) || option.is_kept)
      continue;
    if (line.size() + option.name.size() + 3 > width) {
      text += "\n ";
      line = " ";
    }
    text += " --" + option.name;
    line += " --" + option.name;
  }
  return text;
}

table_rows trainer_table::values(const trainer_options &options, const filter &is_wanted) const {
  table_rows result;
  for (const option_row &option : rows_)
    if ((option.commands & options.command->bit) && is_wanted(option))
      result.emplace_back(option.name, joined(option.texts(&options)));
  return result;
}

bool trainer_table::is_changed(const option_row &option, const trainer_options &options) const {
  return option.texts(&options) != option.texts(&defaults_);
}

std::vector<const option_row *> trainer_table::of_run(const command_row &command) const {
  std::vector<const option_row *> result;
  for (const option_row &option : rows_)
    if ((option.commands & command.bit) && option.is_kept)
      result.push_back(&option);
  return result;
}

} // namespace trainc
