// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/run_log.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/run/log_line.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>

namespace trainc::inspect {

namespace {

class LogReader {
public:
  explicit LogReader(RunLog &log) : log(log) {}

  void add(const std::string &line, int number) {
    nlohmann::json parsed = bounded_json(line, deepest_line);
    if (!is_log_line(parsed))
      log.damaged.push_back(number);
    else if (parsed.contains(step_line))
      addStep(parsed);
    else if (parsed.contains(memory_line))
      addMemory(std::move(parsed));
    else if (parsed.contains(warning_line))
      log.warnings.push_back(std::move(parsed));
    else
      (parsed.contains(summary_line) ? log.summary : log.machine) = std::move(parsed);
  }

  /// A held-out loss has a line of its own with the number of its step: they become one.
  void finish() {
    std::vector<size_t> order(log.steps.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return log.steps[a] < log.steps[b]; });
    std::vector<int64_t> steps;
    std::vector<size_t> rows; // of `steps`, by place in `order`
    for (size_t line : order) {
      if (steps.empty() || steps.back() != log.steps[line])
        steps.push_back(log.steps[line]);
      rows.push_back(steps.size() - 1);
    }
    for (LoggedMember &member : log.members) {
      member.values.resize(order.size(), NAN);
      std::vector<double> values(steps.size(), NAN);
      for (size_t i = 0; i < order.size(); ++i)
        if (const double value = member.values[order[i]]; !std::isnan(value))
          values[rows[i]] = value;
      member.values = std::move(values);
    }
    log.steps = std::move(steps);
  }

private:
  /// Those of the last step that has some.
  void addMemory(nlohmann::json line) {
    if (!log.memory.empty() && log.memory.front()[memory_line] != line[memory_line])
      log.memory.clear();
    log.memory.push_back(std::move(line));
  }

  void addStep(const nlohmann::json &line) {
    for (const auto &[name, value] : line.items()) {
      if (name == step_line)
        continue;
      std::vector<double> &values = memberCalled(name).values;
      values.resize(log.steps.size(), NAN);
      if (value.is_boolean())
        values.push_back(value.get<bool>() ? 1 : 0);
      else if (value.is_number() && std::isfinite(value.get<double>()))
        values.push_back(value.get<double>());
    }
    log.steps.push_back(line[step_line].get<int64_t>());
  }

  LoggedMember &memberCalled(const std::string &name) {
    auto found = std::find_if(log.members.begin(), log.members.end(),
                              [&](const LoggedMember &member) { return member.name == name; });
    return found == log.members.end() ? log.members.emplace_back(LoggedMember{name, {}}) : *found;
  }

  RunLog &log;
};

/// The shortest text that reads back as the same number.
std::string numberText(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// A name as a field: in quotes where it would end one.
std::string fieldOf(const std::string &name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos)
    return name;
  return '"' + llvm::join(llvm::split(name, '"'), "\"\"") + '"';
}

/// Those that every table has in front, in their order.
constexpr const char *kColumns[] = {
    "loss",         "held_out_loss",      "gradient_norm",     "learning_rate",
    "milliseconds", "samples_per_second", "tokens_per_second", "skipped"};

std::vector<std::string> columnsOf(const RunLog &log) {
  std::vector<std::string> columns(std::begin(kColumns), std::end(kColumns));
  for (const LoggedMember &member : log.members)
    if (!llvm::is_contained(columns, member.name))
      columns.push_back(member.name);
  return columns;
}

} // namespace

RunLog readRunLog(const std::string &run) {
  RunLog log;
  log.path = run + "/log.jsonl";
  std::ifstream file(log.path);
  const char *advice = "\n  try: the folder of a run, such as runs/MODEL-0001";
  if (!file)
    throw failure(exit_data, log.path + ": cannot be read" + advice);
  LogReader reader(log);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number)
    reader.add(line, number);
  if (file.bad())
    throw failure(exit_data, log.path + ": cannot be read" + advice);
  if (log.steps.empty())
    throw failure(exit_data, log.path + ": has no line of a step" + advice);
  reader.finish();
  return log;
}

std::vector<double> RunLog::valuesOf(const std::string &name) const {
  for (const LoggedMember &member : members)
    if (member.name == name)
      return member.values;
  return std::vector<double>(steps.size(), NAN);
}

std::optional<size_t> lastRowOf(const std::vector<double> &values) {
  for (size_t row = values.size(); row-- > 0;)
    if (!std::isnan(values[row]))
      return row;
  return std::nullopt;
}

std::optional<size_t> leastRowOf(const std::vector<double> &values) {
  std::optional<size_t> least;
  for (size_t row = 0; row < values.size(); ++row)
    if (!std::isnan(values[row]) && (!least || values[row] < values[*least]))
      least = row;
  return least;
}

std::string damageText(const RunLog &log) {
  return "line " + std::to_string(log.damaged.front()) +
         (log.damaged.size() > 1 ? " and " + std::to_string(log.damaged.size() - 1) + " more are"
                                 : " is") +
         " damaged and left out";
}

std::string csvOf(const RunLog &log) {
  const std::vector<std::string> columns = columnsOf(log);
  std::string text = step_line;
  std::vector<std::vector<double>> values;
  for (const std::string &column : columns) {
    text += "," + fieldOf(column);
    values.push_back(log.valuesOf(column));
  }
  text += "\n";
  for (size_t row = 0; row < log.steps.size(); ++row) {
    text += std::to_string(log.steps[row]);
    for (const std::vector<double> &column : values)
      text += "," + (std::isnan(column[row]) ? "" : numberText(column[row]));
    text += "\n";
  }
  return text;
}

} // namespace trainc::inspect
