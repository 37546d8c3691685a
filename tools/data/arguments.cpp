// SPDX-License-Identifier: Apache-2.0
//
// Parsing and help of trainc-data's commands.
#include "tools/data/arguments.h"

#include "runtime/failure.h"

#include <charconv>
#include <cmath>

namespace trainc::data {
namespace {

// With what every command has that makes files.
option_table tableOf(const CommandRow &command) {
  std::vector<option_row> rows(command.options.begin(), command.options.end());
  rows.push_back(OptionRow("no-progress", "", "", "print no progress on standard error"));
  return {{{"", "Options"}}, std::move(rows)};
}

} // namespace

OptionRow::OptionRow(const std::string &name, const std::string &placeholder,
                     const std::string &defaultValue, const std::string &help, bool repeats,
                     const std::string &words)
    : option_row{name, placeholder, ~0u, help} {
  choices = words;
  is_flag = placeholder.empty();
  is_list = repeats;
  letter = name == "output" ? 'o' : 0;
  read = [name, words, isFlag = is_flag](const std::string &text, value_range,
                                         void *values) -> std::string {
    if (!words.empty() && !is_choice(words, text))
      return "'" + text + "' is none of " + words;
    if (!isFlag || text == "yes")
      static_cast<Arguments *>(values)->values_[name].push_back(text);
    return "";
  };
  texts = [name, defaultValue](const void *values) -> std::vector<std::string> {
    const std::vector<std::string> &given = static_cast<const Arguments *>(values)->list(name);
    return given.empty() && !defaultValue.empty() ? std::vector{defaultValue} : given;
  };
}

bool toNumber(const std::string &text, double &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::vector<std::string> splitAt(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::vector<double> numbersOf(const std::string &text, const std::string &option) {
  std::vector<double> numbers;
  for (const std::string &part : splitAt(text, ',')) {
    numbers.emplace_back();
    if (!toNumber(part, numbers.back()))
      throw failure(exit_usage, "option --" + option + ": '" + part + "' is not a number");
  }
  return numbers;
}

const std::string &Arguments::text(const std::string &name) const {
  static const std::string nothing;
  const std::vector<std::string> &values = list(name);
  return values.empty() ? nothing : values.back();
}

const std::vector<std::string> &Arguments::list(const std::string &name) const {
  static const std::vector<std::string> nothing;
  auto found = values_.find(name);
  return found == values_.end() ? nothing : found->second;
}

void Arguments::complete(const option_table &table) {
  for (const option_row &row : table.rows())
    values_[row.name] = row.texts(this);
}

double Arguments::real(const std::string &name, double least, double most) const {
  double value = 0;
  if (!toNumber(text(name), value))
    throw failure(exit_usage, "option --" + name + ": '" + text(name) + "' is not a number");
  if (value < least || value > most)
    throw failure(exit_usage, format_text("option --%s: %s is not in [%g, %g]", name.c_str(),
                                          text(name).c_str(), least, most));
  return value;
}

int64_t Arguments::integer(const std::string &name, int64_t least, int64_t most) const {
  double value = real(name, static_cast<double>(least), static_cast<double>(most));
  if (value != std::floor(value))
    throw failure(exit_usage, "option --" + name + ": '" + text(name) + "' is not a whole number");
  return static_cast<int64_t>(value);
}

Arguments parseArguments(const CommandRow &command, int count, char **words) {
  Arguments result;
  problem_list problems;
  const option_table table = tableOf(command);
  command_line line = table.parse_alone(count, words, &result);
  for (const option_problem &problem : line.problems)
    problems.add(
        problem.is_unknown
            ? with_advice("unknown option '" + problem.option + "' of " + command.name,
                          problem.advice == "--help" ? "trainc-data " + command.name + " --help"
                                                     : problem.advice)
            : with_advice("option " + problem.option + ": " + problem.message, problem.advice));
  for (const option_problem &problem :
       table.refused(&result, [](const std::string &, const std::string &) { return true; }))
    problems.add(with_advice("option " + problem.option + ": " + problem.message, problem.advice));
  result.complete(table);
  result.words = std::move(line.words);
  if (const option_row *output = table.find("output"); output && !line.given.count("output"))
    problems.add(command.name + ": nothing says where to write\n  try: -o " + output->placeholder);
  if (result.words.empty())
    problems.add(command.name + ": needs " + command.words + "\n  try: " + command.example);
  problems.throw_if_any(exit_usage);
  return result;
}

std::string helpOf(const CommandRow &command) {
  const Arguments defaults;
  return "usage: trainc-data " + command.name + " " + command.words + " [options]\n\n" +
         command.description + "\n\nexample: trainc-data " + command.example + "\n\n" +
         tableOf(command).help("all", &defaults);
}

} // namespace trainc::data
