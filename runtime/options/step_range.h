// SPDX-License-Identifier: Apache-2.0
//
// Training steps in a row, as an option names them.
#pragma once

#include <cstdint>

namespace trainc {

constexpr int64_t most_steps_of_range = 1000;

struct step_range {
  int64_t begin = 1, end = 1; // the step `end` is not one of them

  bool has(int64_t step) const { return begin <= step && step < end; }
};

} // namespace trainc
