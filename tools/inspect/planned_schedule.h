// SPDX-License-Identifier: Apache-2.0
//
// The schedule of a program's stages in time, as the plan predicts it or as a profile has it.
#pragma once

#include "passes/planning/schedule_simulation.h"
#include "tools/simulate/schedule_picture.h"
#include "tools/simulate/stage_plan.h"

#include <string>

namespace trainc::inspect {

struct PlannedSchedule {
  planning::StepTimes times;
  std::string title;
  simulate::TimeAxis axis = simulate::TimeAxis::bytesOfTraffic;
};

/// By what the compiler predicts of the stages; messages and updates take no time.
PlannedSchedule predictedSchedule(const simulate::StagePlan &plan);

/// By the file of `trainer profile -o`. Throws `failure` (exit_data).
PlannedSchedule profiledSchedule(const simulate::StagePlan &plan, const std::string &profile);

} // namespace trainc::inspect
