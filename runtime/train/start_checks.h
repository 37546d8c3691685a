// SPDX-License-Identifier: Apache-2.0
//
// What is looked at just before a run begins, and said where it may not be what is wanted.
#pragma once

#include "runtime/options/schedule_rate.h"
#include "runtime/run/step_log.h"
#include "runtime/train/run_plan.h"

#include <string>

namespace trainc {

// Of the first rank, each. Throws `failure` (exit_disk) where a dry run finds no room for a
// checkpoint; else warns.
void check_space(const run &run, const run_plan &plan);

// A schedule as long as the run has another rate at the same step where the run gets longer.
void warn_of_rate(const run &run, const run_plan &plan, const rate_schedule &schedule,
                  const loader &data);

// Checkpoints in the folder that are links: somebody has them elsewhere.
void warn_of_links(const run &run, const std::string &folder);

// A log that was damaged, or has no lines of the last steps.
void warn_of_log(const run &run, const run_plan &plan, const step_log &log);

} // namespace trainc
