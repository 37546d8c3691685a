// SPDX-License-Identifier: Apache-2.0
//
// Parameters and optimizer states from files that somebody else may have written, such as the state
// of PyTorch's module: what state_dict.h writes, in the other direction.
#pragma once

#include "runtime/arena.h"
#include "runtime/checkpoint/state_dict.h"
#include "runtime/name_pattern.h"

#include <string>
#include <vector>

namespace trainc {

// Takes what a safetensors file or a checkpoint has of the parameters, by their ONNX names, by
// those of PyTorch's module or by those of copies which the model's file has of them, as these hold
// them; says what it lacks. First `changes` are made to its names; where none fits then, a
// beginning is taken off them or put before them. Throws `failure` (exit_checkpoint) where it has
// none, one of another shape or one that is not finite, and where a change finds no name; of a file
// of adapters, where it has not all of the program's and no others.
void read_weights(const program &program, const arenas &arenas, arena_access &access,
                  const std::string &path, const warning &warn,
                  const std::vector<name_change> &changes = {});

// Takes what write_optimizer_state writes into `states`, which are those of a checkpoint
// (state_tensors, without parameters); returns the number of updates. Throws `failure`
// (exit_checkpoint) where it lacks one, or has one of another shape.
int64_t read_optimizer_state(const program &program, const std::vector<tensor_view> &states,
                             const std::string &path);

} // namespace trainc
