// SPDX-License-Identifier: Apache-2.0
//
// The grid of a schedule as a picture, to scale.
#pragma once

#include "passes/planning/schedule_simulation.h"

#include <string>

namespace trainc::simulate {

/// SVG: a row for each stage of the first replica with its idle time and slots, a box for each
/// forward, backward and update. `title` says what it is of; `unit` is what the axis counts in.
std::string schedulePicture(const planning::Schedule &schedule, const planning::StepTimes &times,
                            const std::string &title, const std::string &unit);

} // namespace trainc::simulate
