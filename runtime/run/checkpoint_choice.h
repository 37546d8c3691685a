// SPDX-License-Identifier: Apache-2.0
//
// Which checkpoint --checkpoint names, and which one of a run is the best.
#pragma once

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/run/run.h"

#include <string>
#include <vector>

namespace trainc {

// What --keep and its kin come to for the run in `folder`: its own, but for what the command line
// says. Throws `failure` (exit_usage) where its configuration cannot be read.
keep_policy policy_of(const run &run, const std::string &folder);

// What its checkpoints are compared by: --keep-best, else the held-out loss.
std::string best_metric_of(const keep_policy &policy);

// Of several, newest first, the one with the best metric: of equals the oldest, as --keep-best
// keeps. Null where none has the metric.
const checkpoint_info *best_of(const std::vector<checkpoint_info> &all, const std::string &metric);

// The path of the one whose parameters --checkpoint means, for commands that only read. Throws
// `failure` (exit_checkpoint) where there is none.
std::string chosen_checkpoint(const run &run);

} // namespace trainc
