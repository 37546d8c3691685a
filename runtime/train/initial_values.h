// SPDX-License-Identifier: Apache-2.0
//
// `train --initialise`: parameters from a safetensors file that somebody else may have written,
// such as the state of PyTorch's module, or from a checkpoint.
#pragma once

#include "runtime/options/run_configuration.h"
#include "runtime/run/run.h"

namespace trainc {

// Takes what the origin's file has of the parameters, under the names that its changes give
// (checkpoint/module_weights.h). Collective. Throws `failure` (exit_checkpoint).
void take_initial_values(run &run, const run_origin &origin);

} // namespace trainc
