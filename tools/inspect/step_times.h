// SPDX-License-Identifier: Apache-2.0
//
// What `trainer profile -o FILE` has measured of each step of a plan.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace trainc::inspect {

struct StepTime {
  double seconds; // of one launch
  double times;   // launches in a step of training
};

/// By entry function and number, of the first replica. Throws `failure` (exit_data).
std::map<std::pair<std::string, int>, StepTime> readStepTimes(const std::string &profile);

/// Throws `failure` (exit_data) of a file that is no profile.
[[noreturn]] void refuseProfile(const std::string &path, const char *what);

} // namespace trainc::inspect
