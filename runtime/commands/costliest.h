// SPDX-License-Identifier: Apache-2.0
//
// Which kernels, nodes and modules take most of a training step: tables of `profile --trace`.
#pragma once

#include "runtime/observe/step_plan.h"

#include <nlohmann/json.hpp>

namespace trainc {

// Of the ranks of the first replica. `reports` are those of the ranks; `product_rate` is what a
// product of large matrices reaches, in operations a second; 0: not known.
void print_costliest(const nlohmann::ordered_json &reports, const planned_steps &plan,
                     double step_seconds, double product_rate);

} // namespace trainc
