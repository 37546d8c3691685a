// SPDX-License-Identifier: Apache-2.0
//
// The grid of a schedule as a picture, to scale.
#pragma once

#include "passes/planning/schedule_simulation.h"

#include <string>

namespace trainc::simulate {

/// What the times count.
enum class TimeAxis { seconds, bytesOfTraffic };

/// SVG: a row for each stage of the first replica with its idle time and slots, a box for each
/// forward, backward, update and exchange, and a legend. `title` says what it is of.
std::string schedulePicture(const planning::Schedule &schedule, const planning::StepTimes &times,
                            const std::string &title, TimeAxis axis);

} // namespace trainc::simulate
