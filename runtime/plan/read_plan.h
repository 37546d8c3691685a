// SPDX-License-Identifier: Apache-2.0
//
// The one reader of what trainc writes into plan/.
#pragma once

#include "runtime/plan/plan.h"

#include <functional>
#include <string>

namespace trainc {

// Of an output folder of trainc.
std::string plan_path(const std::string &folder);

// The plan of an output folder. Throws `failure` (exit_data) with what is wrong of the file, which
// may be damaged or written by hand: numbers of steps and kernels are within their lists.
plan read_plan(const std::string &folder);
// For callers that can work without a plan: if it cannot be read, calls `warn` with the reason and
// returns an empty plan.
plan read_plan(const std::string &folder, const std::function<void(const std::string &)> &warn);

// The lines of the emitted source, beside the plan that was read. Throws as read_plan does.
source_map read_source_map(const std::string &folder, const plan &of);

// Of a program for CUDA that was compiled. Throws as read_plan does.
register_table read_registers(const std::string &folder);

} // namespace trainc
