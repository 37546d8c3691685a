// SPDX-License-Identifier: Apache-2.0
//
// Hyperparameters that are 0 or 1, and what those that are 1 need of others: one rule for the
// options of a trainer and the settings of a library.
#pragma once

#include "runtime/failure.h"
#include "runtime/program.h"

#include <cstring>
#include <string>

namespace trainc {

// Calls problem(text) for each rule that does not hold. value(i) is that of hyperparameter i,
// name(i) what a user writes for it.
template <typename Value, typename Name, typename Problem>
void check_switches(const program &program, const Value &value, const Name &name,
                    const Problem &problem) {
  const auto number_of = [&](const char *wanted) {
    for (int64_t i = 0; i < std::ssize(program.hyperparameters); ++i)
      if (strcmp(program.hyperparameters[i].name, wanted) == 0)
        return i;
    throw failure(exit_internal,
                  std::string("internal error: the program has no hyperparameter '") + wanted +
                      "', which another one needs");
  };
  for (int64_t i = 0; i < std::ssize(program.hyperparameters); ++i) {
    const hyperparameter &own = program.hyperparameters[i];
    if (!own.needs_above_zero || value(i) == 0)
      continue;
    const std::string of = name(i);
    if (value(i) != 1)
      problem(format_text("%s: %g is neither 0 nor 1", of.c_str(), value(i)));
    const int64_t needed = number_of(own.needs_above_zero), other = number_of(own.needs_zero);
    if (value(needed) <= 0)
      problem(format_text("%s: needs %s, which is %g\n  try: %s 0.9", of.c_str(),
                          name(needed).c_str(), value(needed), name(needed).c_str()));
    if (value(other) != 0)
      problem(format_text("%s: not beside %s, which is %g\n  try: %s 0", of.c_str(),
                          name(other).c_str(), value(other), name(other).c_str()));
  }
}

} // namespace trainc
