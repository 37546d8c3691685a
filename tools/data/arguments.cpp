// SPDX-License-Identifier: Apache-2.0
//
// Parsing and help of trainc-data's commands.
#include "tools/data/arguments.h"

#include "runtime/failure.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace trainc::data {
namespace {

// What every command that makes files has.
const std::vector<OptionRow> &commonRows() {
  static const std::vector<OptionRow> rows = {
      {"no-progress", "", "", "print no progress on standard error"},
  };
  return rows;
}

const OptionRow *find(const CommandRow &command, const std::string &name) {
  for (const auto *rows : {&command.options, &commonRows()})
    for (const OptionRow &row : *rows)
      if (row.name == name)
        return &row;
  return nullptr;
}

bool isChoice(const std::string &choices, const std::string &value) {
  for (const std::string &choice : splitAt(choices, '|'))
    if (choice == value)
      return true;
  return false;
}

} // namespace

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
  for (int i = 0; i < count; ++i) {
    std::string word = words[i];
    if (word == "-o")
      word = "--output";
    if (word.rfind("--", 0) != 0) {
      result.words.push_back(word);
      continue;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2), value;
    const OptionRow *row = find(command, name);
    if (!row) {
      problems.add("unknown option '--" + name + "' of " + command.name + "\n  try: trainc-data " +
                   command.name + " --help");
      continue;
    }
    if (row->placeholder.empty())
      value = "yes";
    else if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (i + 1 < count)
      value = words[++i];
    else
      problems.add("option --" + name + ": needs a value " + row->placeholder);
    if (!row->choices.empty() && !isChoice(row->choices, value))
      problems.add("option --" + name + ": '" + value + "' is none of " + row->choices);
    auto &values = result.values_[name];
    if (!values.empty() && !row->repeats)
      problems.add("option --" + name + ": given twice");
    values.push_back(value);
  }
  for (const OptionRow &row : command.options)
    if (!row.defaultValue.empty() && !result.values_.count(row.name))
      result.values_[row.name] = {row.defaultValue};
  if (find(command, "output") && !result.has("output"))
    problems.add(command.name + ": nothing says where to write\n  try: -o " +
                 find(command, "output")->placeholder);
  if (result.words.empty())
    problems.add(command.name + ": needs " + command.words + "\n  try: " + command.example);
  problems.throw_if_any(exit_usage);
  return result;
}

std::string helpOf(const CommandRow &command) {
  constexpr size_t column = 32;
  std::string page = "usage: trainc-data " + command.name + " " + command.words + " [options]\n\n" +
                     command.description + "\n\nexample: trainc-data " + command.example + "\n\n";
  auto add = [&](const OptionRow &row) {
    std::string left = row.name == "output" ? "  -o, --output" : "  --" + row.name;
    left += row.placeholder.empty() ? "" : " " + row.placeholder;
    std::string right;
    for (char c : row.help)
      right += c == '\n' ? "\n" + std::string(column, ' ') : std::string(1, c);
    if (!row.choices.empty()) {
      std::string choices = row.choices;
      std::replace(choices.begin(), choices.end(), '|', ',');
      right += ": " + choices;
    }
    if (!row.defaultValue.empty())
      right += " (default " + row.defaultValue + ")";
    left += left.size() >= column - 1 ? "\n" + std::string(column, ' ')
                                      : std::string(column - left.size(), ' ');
    page += left + right + "\n";
  };
  for (const auto *rows : {&command.options, &commonRows()})
    for (const OptionRow &row : *rows)
      add(row);
  return page;
}

} // namespace trainc::data
