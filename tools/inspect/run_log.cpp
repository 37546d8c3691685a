// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/run_log.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/run/log_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

namespace trainc::inspect {

namespace {

/// A held-out loss has a line of its own with the number of its step.
class LogReader {
public:
  explicit LogReader(RunLog &log) : log(log) {}

  void add(const std::string &line, int number) {
    const nlohmann::json parsed = bounded_json(line, deepest_line);
    if (!is_log_line(parsed))
      log.damaged.push_back(number);
    else if (parsed.contains(step_line))
      addStep(parsed);
  }

private:
  void addStep(const nlohmann::json &line) {
    const auto number = line[step_line].get<int64_t>();
    auto [place, isNew] = places.try_emplace(number, log.steps.size());
    if (isNew)
      log.steps.push_back({number, {}});
    for (const auto &[name, value] : line.items()) {
      if (name == step_line)
        continue;
      if (std::find(log.members.begin(), log.members.end(), name) == log.members.end())
        log.members.push_back(name);
      if (value.is_boolean())
        log.steps[place->second].values[name] = value.get<bool>() ? 1 : 0;
      else if (value.is_number() && std::isfinite(value.get<double>()))
        log.steps[place->second].values[name] = value.get<double>();
    }
  }

  RunLog &log;
  std::map<int64_t, size_t> places; // of steps
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
  std::string quoted = "\"";
  for (char c : name)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// Those that every table has in front, in their order.
constexpr const char *kColumns[] = {
    "loss",         "held_out_loss",      "gradient_norm",     "learning_rate",
    "milliseconds", "samples_per_second", "tokens_per_second", "skipped"};

std::vector<std::string> columnsOf(const RunLog &log) {
  std::vector<std::string> columns(std::begin(kColumns), std::end(kColumns));
  for (const std::string &member : log.members)
    if (std::find(columns.begin(), columns.end(), member) == columns.end())
      columns.push_back(member);
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
  std::stable_sort(log.steps.begin(), log.steps.end(),
                   [](const auto &a, const auto &b) { return a.step < b.step; });
  return log;
}

std::string csvOf(const RunLog &log) {
  const std::vector<std::string> columns = columnsOf(log);
  std::string text = step_line;
  for (const std::string &column : columns)
    text += "," + fieldOf(column);
  text += "\n";
  for (const LoggedStep &step : log.steps) {
    text += std::to_string(step.step);
    for (const std::string &column : columns) {
      auto value = step.values.find(column);
      text += "," + (value == step.values.end() ? "" : numberText(value->second));
    }
    text += "\n";
  }
  return text;
}

} // namespace trainc::inspect
