// SPDX-License-Identifier: Apache-2.0
//
// What a page says of a program: plans of an output folder and a measured profile, as JSON.
#pragma once

#include "runtime/plan/plan.h"

#include <nlohmann/json.hpp>
#include <string>

namespace trainc::inspect {

/// Kernels, arenas, tensors at the peak and the schedule of stages, as planned: of the files that
/// the folder has. The schedule takes its times from `profile`, a file, where that is not empty.
/// Throws `failure` (exit_data) where a file cannot be read.
nlohmann::ordered_json programReport(const std::string &folder, const plan &program,
                                     const std::string &profile);

/// Kernels and actions of `trainer profile -o FILE`, the costliest first. Throws like the above.
nlohmann::ordered_json profileReport(const std::string &path);

} // namespace trainc::inspect
