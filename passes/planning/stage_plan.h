// SPDX-License-Identifier: Apache-2.0
//
// The stages of a plan: their schedule, proven, and what their ranks hold.
#pragma once

#include "passes/planning/schedule_simulation.h"
#include "runtime/plan/plan.h"

namespace trainc::planning {

/// The lists of actions, places and slots of `schedule` become the plan's.
void addSchedule(planned_stages &stages, const Schedule &schedule);

/// The schedule that the plan has. A plan may be damaged or written by hand: `fault` is what is
/// wrong, or stays empty.
Schedule scheduleOf(const planned_stages &stages, std::string &fault);

/// What the ranks of a schedule of the plan's chunks need.
memory_needs needsOf(const planned_stages &stages, const Schedule &schedule);

/// The same of a step in one piece.
memory_needs needsOfOne(const planned_stages &stages);

/// Of a rank of each stage, where the replicas are on one host.
std::vector<rank_memory> memoryOfRanks(const planned_stages &stages, const Schedule &schedule,
                                       int replicas);

/// As predicted, if messages, exchanges and the update took no time.
StepTimes predictedTimes(const planned_stages &stages, const Schedule &schedule);

} // namespace trainc::planning
