// SPDX-License-Identifier: Apache-2.0
//
// Proves a schedule before anything runs: every micro-batch goes through every chunk once
// in either direction; what an action reads is there; sends match receives in order; no
// slot or place is taken while its content is still to be read; all ranks of a collective
// come to it in the same order; and no stage waits for one that waits for it.
#pragma once

#include "passes/planning/pipeline_schedule.h"

#include <utility>

namespace trainc::planning {

/// One message for each fault, with stage and action, at most `most`; empty for a proven schedule.
std::vector<std::string> faultsOf(const Schedule &schedule, size_t most = 10);

} // namespace trainc::planning
