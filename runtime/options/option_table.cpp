// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/option_table.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace trainc {
namespace {

// Of a program without gradients.
constexpr unsigned forward_commands = command_predict | command_export | command_info;

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

bool is_choice(const std::string &choices, const std::string &word) {
  return !word.empty() && word.find('|') == std::string::npos &&
         ("|" + choices + "|").find("|" + word + "|") != std::string::npos;
}

// Of a value that is text, the words which this program knows.
void limit_to(const std::vector<std::string> &words, option_row &option) {
  for (const std::string &word : words)
    option.choices += (option.choices.empty() ? "" : "|") + word;
  option.read = [words, choices = option.choices, read = option.read](
                    const std::string &text, value_range range, trainer_options &options) {
    return std::find(words.begin(), words.end(), text) == words.end()
               ? "'" + text + "' is none of " + choices
               : read(text, range, options);
  };
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

// A run may go on with another target or precision, where options of the first mean nothing.
bool is_of_another_program(const std::string &name) {
  for (const auto &rows : {cpu_rows(), cuda_rows(), loss_scale_rows()})
    for (const option_row &option : rows)
      if (option.name == name)
        return true;
  return false;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

} // namespace

std::string option_name(const hyperparameter &value) { return with_dashes(value.name); }

// The placeholder of options that name an input and its file.
static bool names_input(const option_row &option) { return option.placeholder == "NAME=FILE"; }

std::string option_table::read(const option_row &option, const std::string &text,
                               trainer_options &options) const {
  std::string problem = option.read(text, option.range, options);
  if (const named_file parts = named_file_of(program_, text);
      problem.empty() && names_input(option) && (parts.name.empty() || parts.file.empty()))
    problem = "'" + text + "' does not have the form " + option.placeholder;
  return problem.empty() ? "" : "option --" + option.name + ": " + problem;
}

std::vector<std::string> option_table::kept_values(const option_row &option,
                                                   const trainer_options &options) const {
  std::vector<std::string> texts = option.texts(options);
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

option_table::option_table(const program &program)
    : program_(program),
      commands_(program.forward_backward || program.stages ? ~0u : forward_commands),
      rows_(common_rows()) {
  for (const option_row &option :
       std::strcmp(program.target, "cuda") == 0 ? cuda_rows() : cpu_rows())
    rows_.push_back(option);
  if (program.loss_scale_offset >= 0)
    for (const option_row &option : loss_scale_rows())
      rows_.push_back(option);
  for (option_row &option : rows_)
    if (option.name == "keep-best")
      limit_to(names_of_metrics(program), option);
  if (!program.forward_backward && !program.stages) // there are no runs
    defaults_.checkpoint = "initial";
  if (program.stages)
    defaults_.micro_batches = program.stages->micro_batches;
  if (program.shards_gradients)
    defaults_.shard = shard_kind::gradients;
  for (int64_t i = 0; i < program.hyperparameter_count; ++i) {
    const hyperparameter &value = program.hyperparameters[i];
    defaults_.hyperparameters.push_back(value.follows ? std::nullopt
                                                      : std::optional(value.default_value));
    auto place = [i](auto &options) -> auto & {
      return options.hyperparameters[static_cast<size_t>(i)];
    };
    const bool is_rate = value.follows && std::strcmp(value.follows, "learning_rate") == 0;
    const std::string source = value.follows ? "default: --" + with_dashes(value.follows)
                                             : std::string(program.optimizer_name);
    if (!find(option_name(value), command_train))
      rows_.push_back(row(option_name(value), place, is_rate ? "RATE" : "X", command_train,
                          std::string(value.help) + " (" + source + ")")
                          .within({value.least, value.limit, value.may_be_limit}));
  }
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

const command_row &option_table::known(const std::string &word) const {
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

std::string option_table::command_list() const {
  std::string list;
  for (const command_row &command : all_commands())
    if (command.bit & commands_)
      list += std::string(command.name) + ", ";
  return list + "help";
}

const option_row *option_table::named_by(const std::string &argument, const command_row &command,
                                         std::string &problem) const {
  size_t dashes = argument.rfind("--", 0) == 0 ? 2 : argument.rfind('-', 0) == 0 ? 1 : 0;
  if (dashes == 0) {
    problem = "unexpected argument '" + argument + "'";
    return nullptr;
  }
  std::string given = argument.substr(0, argument.find('=')), name = given.substr(dashes);
  const option_row *option =
      (dashes == 1) == (name.size() == 1) ? find(name, command.bit) : nullptr;
  if (!option && name == "ema" && command.bit == command_train) {
    problem = "unknown option '" + given +
              "' of train: the program keeps no moving average\n  try: trainc --ema";
    return nullptr;
  }
  std::string near = option ? "" : nearest(name, command.bit);
  if (!option)
    problem = "unknown option '" + given + "' of " + command.name +
              "\n  try: " + (near.empty() ? std::string(command.name) + " --help" : "--" + near);
  return option;
}

trainer_options option_table::parse(int count, const char *const *arguments) const {
  trainer_options result = defaults_;
  problem_list problems;
  if (count == 0)
    throw failure(exit_usage, overview() + "\nno command given\n  try: " + command_list());
  const std::string word = arguments[0];
  if (word == "--version") {
    result.wants_help = result.wants_version = true;
    return result;
  }
  if (word == "help" || word == "--help" || word == "-h") {
    result.wants_help = true;
    if (count > 1)
      result.command = &known(arguments[1]);
    return result;
  }
  const command_row &command = known(word);
  result.command = &command;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i], problem;
    if (argument == "--help" || argument == "-h") {
      result.wants_help = true;
      return result;
    }
    if (result.action.empty() && is_choice(command.actions, argument)) {
      result.action = argument;
      continue;
    }
    const option_row *option = named_by(argument, command, problem);
    size_t equals = argument.find('=');
    bool is_alone = equals == std::string::npos;
    if (!option) {
      problems.add(problem);
      // What follows an unknown option is most likely its value.
      if (argument[0] == '-' && is_alone && i + 1 < count && arguments[i + 1][0] != '-')
        ++i;
      continue;
    }
    std::string value = is_alone ? "yes" : argument.substr(equals + 1);
    if (is_alone && !option->is_flag) {
      if (i + 1 == count) {
        problems.add("option --" + option->name + ": needs a value " + option->placeholder);
        continue;
      }
      value = arguments[++i];
    }
    problem = read(*option, value, result);
    if (!problem.empty())
      problems.add(problem);
    if (!result.given.insert(option->name).second && !option->is_list)
      problems.add("option --" + option->name + ": given twice");
  }
  if (*command.actions && result.action.empty())
    problems.add(std::string(command.name) + ": needs one of " + command.actions +
                 "\n  try: " + command.example);
  problems.throw_if_any(exit_usage);
  return result;
}

std::string option_table::overview() const {
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

std::string option_table::version() const {
  return format_text("trainer of '%s', compiled by trainc %s for %s, %s\n", program_.model_name,
                     program_.compiler_version, program_.target, program_.march);
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
    if (!option.is_flag)
      left += " " + option.placeholder;
    std::string right = option.help;
    if (!option.choices.empty())
      right += ": " + option.choices;
    const std::string value = visible(joined(option.texts(defaults_)));
    if (!option.is_flag && !value.empty())
      right += " (default " + value + ")";
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
    text += "\nOf one start, and not kept with the run:" + options_of_one_start() + "\n";
  if (command.bit == command_train)
    text += "\n--FLAG=no takes back an option without a value that a resumed run has.\n"
            "\nSIGUSR1 asks for a checkpoint; SIGTERM or SIGINT for a checkpoint and the end.\n"
            "mpirun kills its ranks one second after a SIGTERM of its own; give it\n"
            "--mca odls_base_sigkill_timeout SECONDS where a step and a checkpoint take longer.\n";
  return text;
}

// In lines, each after a blank.
std::string option_table::options_of_one_start() const {
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

std::vector<std::pair<std::string, std::string>>
option_table::values(const trainer_options &options) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const option_row &option : rows_)
    if (option.commands & options.command->bit)
      result.emplace_back(option.name, joined(option.texts(options)));
  return result;
}

std::vector<std::pair<std::string, std::string>>
option_table::changed_values(const trainer_options &options) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const option_row &option : rows_)
    if ((option.commands & options.command->bit) &&
        option.texts(options) != option.texts(defaults_))
      result.emplace_back(option.name, joined(option.texts(options)));
  return result;
}

std::vector<std::pair<std::string, std::string>>
option_table::shared_values(const trainer_options &options) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const option_row &option : rows_)
    if ((option.commands & options.command->bit) && option.is_shared)
      result.emplace_back(option.name, joined(option.texts(options)));
  return result;
}

std::vector<const option_row *> option_table::of_run(const command_row &command) const {
  std::vector<const option_row *> result;
  for (const option_row &option : rows_)
    if ((option.commands & command.bit) && option.is_kept)
      result.push_back(&option);
  return result;
}

std::vector<changed_option>
option_table::restore(std::map<std::string, std::vector<std::string>> configuration,
                      const std::string &source, trainer_options &options,
                      problem_list &problems) const {
  // Two ways to say how long: the command line's replaces the other.
  std::vector<changed_option> changes;
  for (auto [one, other] : {std::pair("steps", "epochs"), std::pair("epochs", "steps")})
    if (auto replaced = configuration.find(other);
        options.given.count(one) && replaced != configuration.end()) {
      changes.push_back({other, replaced->second, {}});
      configuration.erase(replaced);
    }
  auto add_change = [&](const option_row &option, const trainer_options &before) {
    changed_option change = {option.name, kept_values(option, before),
                             kept_values(option, options)};
    if (change.before != change.now)
      changes.push_back(change);
  };
  for (auto &[name, texts] : configuration) {
    const option_row *option = find(name, options.command->bit);
    if (!option && is_of_another_program(name))
      continue;
    if (!option || option->name != name) {
      std::string near = nearest(name, options.command->bit);
      problems.add(source + ": unknown option '" + name + "'" +
                   (near.empty() ? "" : "\n  try: " + near));
      continue;
    }
    if (!option->is_kept) {
      problems.add(source + ": option '" + name + "' is of one start, not of a run\n  try: --" +
                   name + " on the command line");
      continue;
    }
    if (texts.size() > 1 && !option->is_list)
      problems.add(source + ": option '" + name + "' takes one value");
    bool is_given = options.given.count(name);
    trainer_options before = defaults_;
    for (const std::string &text : texts)
      if (std::string problem = read(*option, text, is_given ? before : options); !problem.empty())
        problems.add(source + ": " + problem);
    if (is_given)
      add_change(*option, before);
    else if (option->texts(options) != option->texts(defaults_))
      options.written.insert(name);
  }
  // What has no value is in no configuration.
  for (const std::string &name : options.given)
    if (const option_row *option = find(name, options.command->bit);
        option->is_kept && !configuration.count(name))
      add_change(*option, defaults_);
  return changes;
}

} // namespace trainc
