// SPDX-License-Identifier: Apache-2.0
//
// What a line of a run's log is: the name of its first member tells. A log has lines of these
// kinds and no others.
#pragma once

#include <nlohmann/json.hpp>

namespace trainc {

constexpr const char *step_line = "step", *summary_line = "summary", *machine_line = "machine",
                     *memory_line = "memory", *warning_line = "warning"; // numbers, as `step`
constexpr const char *warning_text = "text";
constexpr int deepest_line = 1; // object of numbers and texts

// The member that has the number of a step; null: the line is not of one.
inline const char *number_of_line(const nlohmann::json &line) {
  for (const char *numbered : {step_line, memory_line, warning_line})
    if (line.contains(numbered))
      return numbered;
  return nullptr;
}

inline bool is_log_line(const nlohmann::json &line) {
  if (!line.is_object())
    return false;
  if (const char *numbered = number_of_line(line))
    return line[numbered].is_number_integer();
  return line.contains(summary_line) || line.contains(machine_line);
}

} // namespace trainc
