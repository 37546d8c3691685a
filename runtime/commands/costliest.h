// SPDX-License-Identifier: Apache-2.0
//
// Which kernels, nodes and modules take most of a training step: tables of `profile --trace`.
#pragma once

#include "runtime/plan/plan.h"

#include <nlohmann/json.hpp>

namespace trainc {

// What the machine reaches, a second; 0: not known.
struct machine_rates {
  double product = 0; // operations of a product of large matrices
  double copy = 0;    // bytes that a copy reads and writes
};

// Of the ranks of the first replica. `reports` are those of the ranks.
void print_costliest(const nlohmann::ordered_json &reports, const plan &plan, double step_seconds,
                     const machine_rates &rates);

} // namespace trainc
