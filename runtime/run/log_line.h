// SPDX-License-Identifier: Apache-2.0
//
// What a line of a run's log is: the name of its first member tells. A log has lines of these
// kinds and no others.
#pragma once

#include <nlohmann/json.hpp>

namespace trainc {

constexpr const char *step_line = "step", *summary_line = "summary", *machine_line = "machine",
                     *memory_line = "memory"; // the number of a step, as `step`
constexpr int deepest_line = 1;               // object of numbers

inline bool is_log_line(const nlohmann::json &line) {
  if (!line.is_object())
    return false;
  for (const char *numbered : {step_line, memory_line})
    if (line.contains(numbered))
      return line[numbered].is_number_integer();
  return line.contains(summary_line) || line.contains(machine_line);
}

} // namespace trainc
