// SPDX-License-Identifier: Apache-2.0
//
// What plan/steps.txt says that steps are: `matmul 64 x 32 x 32`, or the name of a kernel.
#pragma once

#include "tools/inspect/program_names.h"

#include <map>
#include <string>
#include <utility>

namespace trainc::inspect {

class StepTexts {
public:
  /// Throws `failure` (exit_data) where the file cannot be read.
  explicit StepTexts(const std::string &folder);
  /// Empty where the file has no such step.
  std::string of(const NamedStep &step) const;

private:
  std::map<std::pair<std::string, int>, std::string> texts; // by entry function and number
};

} // namespace trainc::inspect
