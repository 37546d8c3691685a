// SPDX-License-Identifier: Apache-2.0
//
// The memory of a rank at a phase of a training step, as a line for people and as numbers by name.
#pragma once

#include "runtime/observe/memory_phases.h"
#include "runtime/ranks/rank_memory.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace trainc {

// Bytes by name, in the order of the columns: what the rank holds in the whole step, what is alive
// at the phase, and what was measured.
using named_bytes = std::vector<std::pair<const char *, int64_t>>;
named_bytes memory_row(const rank_memory &planned, const phase_memory &phase);

// "phase: pre_forward | parameters: 474.7 | ...", in MiB, without what is none beyond the usual.
std::string memory_text(memory_phase phase, const named_bytes &row);

} // namespace trainc
