// SPDX-License-Identifier: Apache-2.0
//
// How many bytes of an arena the tensors of a function take over its steps.
#pragma once

#include "runtime/plan/plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

// A tensor takes its bytes from the step that makes it, an argument from the start, to the step
// that reads it last. Bytes that several tensors share count once.
struct living_bytes {
  std::vector<int64_t> at;      // each step, of what it reads and writes too
  std::vector<int64_t> between; // before each step, and at the end
};

living_bytes living_bytes_of(const planned_entry &entry, const std::string &arena);
// Bytes of activations and stash that the function needs at each step.
std::vector<int64_t> needed_bytes_of(const planned_entry &entry);

} // namespace trainc
