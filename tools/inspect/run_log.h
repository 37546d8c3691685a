// SPDX-License-Identifier: Apache-2.0
//
// The log of a run (runtime/run/step_log.h) by its steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainc::inspect {

struct LoggedStep {
  int64_t step;
  std::map<std::string, double> values; // by member; without those that are not finite numbers
  double get(const std::string &name, double otherwise) const {
    auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
};

struct RunLog {
  std::string path;
  std::vector<LoggedStep> steps;    // in their order, each once
  std::vector<std::string> members; // that steps have, as they first appear
  std::vector<int> damaged;         // lines that are none of a log
};

/// Of the run's folder. Throws `failure` (exit_data) where there is no step to be read.
RunLog readRunLog(const std::string &run);

/// A row for each step below a row of names; what a step does not have is empty.
std::string csvOf(const RunLog &log);

} // namespace trainc::inspect
