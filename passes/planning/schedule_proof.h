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

/// What waits for what: edges between actions numbered over all stages, in the order of
/// the stages. An action comes after the one before it on its stage, a receive after its
/// send, a send after the action that frees its place at the receiver; those of one
/// collective are one, so each is behind what comes before any of them.
struct ActionGraph {
  std::vector<int> firstOfStage; // and the number of actions at the end
  std::vector<std::vector<int>> after;
};

/// Only of a proven schedule.
ActionGraph graphOf(const Schedule &schedule);

/// One message for each fault, with stage and action, at most `most`; empty for a proven schedule.
std::vector<std::string> faultsOf(const Schedule &schedule, size_t most = 10);

} // namespace trainc::planning
