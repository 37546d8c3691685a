// SPDX-License-Identifier: Apache-2.0
//
// The log of a run (runtime/run/step_log.h) by its steps.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace trainc::inspect {

/// What lines of steps call one of their numbers.
struct LoggedMember {
  std::string name;
  std::vector<double> values; // of RunLog::steps; NaN: the step has none that is finite
};

struct RunLog {
  std::string path;
  std::vector<int64_t> steps;         // in their order, each once
  std::vector<LoggedMember> members;  // as they first appear
  std::vector<int> damaged;           // lines that are none of a log
  nlohmann::json summary, machine;    // the last line of each; null: there is none
  std::vector<nlohmann::json> memory; // of the last step that has some: a rank at a phase each
  std::vector<nlohmann::json> warnings;

  /// NaN for every step where no line has it.
  std::vector<double> valuesOf(const std::string &name) const;
};

/// Of the run's folder. Throws `failure` (exit_data) where there is no step to be read.
RunLog readRunLog(const std::string &run);

/// Of the last number; nothing where all are NaN.
std::optional<size_t> lastRowOf(const std::vector<double> &values);
/// Of the least number, the first of several.
std::optional<size_t> leastRowOf(const std::vector<double> &values);

/// `line 3 and 1 more are damaged and left out`: where there are some.
std::string damageText(const RunLog &log);

/// A row for each step below a row of names; what a step does not have is empty.
std::string csvOf(const RunLog &log);

} // namespace trainc::inspect
