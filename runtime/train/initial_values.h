// SPDX-License-Identifier: Apache-2.0
//
// `train --initialise`: parameters from a safetensors file that somebody else may have written,
// such as the state of PyTorch's module.
#pragma once

#include "runtime/run/run.h"

#include <string>

namespace trainc {

// Takes what the file has of the parameters, by their ONNX names, by those of PyTorch's module or
// by those of copies which the model's file has of them, as these hold them; says what it lacks.
// Collective. Throws `failure` (exit_checkpoint) where it has none, one of another shape
// or one that is not finite.
void take_initial_values(run &run, const std::string &path);

} // namespace trainc
