// SPDX-License-Identifier: Apache-2.0
//
// Options of `train` that contradict each other, or need another one.
#pragma once

#include "runtime/options/options.h"
#include "runtime/program.h"

namespace trainc {

// Throws `failure` (exit_usage) with every problem.
void check_train_options(const program &program, const trainer_options &options);

} // namespace trainc
