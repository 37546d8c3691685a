// SPDX-License-Identifier: Apache-2.0
//
// The stages of an output folder's plan with their schedule, and other schedules of the same
// chunks.
#pragma once

#include "passes/planning/stage_plan.h"

#include <string>

namespace trainc::simulate {

struct StagePlan {
  std::string folder;
  plan whole;
  planning::Schedule schedule; // proven

  const planned_stages &stages() const { return *whole.stages; }
  const std::vector<planned_chunk> &chunks() const { return stages().chunks; }
};

/// Throws `failure` (exit_data) with what is wrong of the folder's plan.
StagePlan readStagePlan(const std::string &folder);
/// The same of a plan that was read, of a program that trains.
StagePlan stagePlanOf(const std::string &folder, plan whole);

/// Another schedule of the plan's chunks, which trainc would make of the same options: on `stages`
/// stages, as `kind` says. Throws `failure` (exit_usage) where there is none.
planning::Schedule scheduleFor(const StagePlan &plan, int stages, planning::ScheduleKind kind,
                               int microBatches);

} // namespace trainc::simulate
