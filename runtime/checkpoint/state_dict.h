// SPDX-License-Identifier: Apache-2.0
//
// `export --state-dict` and `--optimizer-state`: what PyTorch's module and optimizer load. The
// names and layouts are those of the program's table of the module's tensors, which `train
// --initialise` reads in the other direction (train/run_plan.cpp).
#pragma once

#include "runtime/files/output_file.h"
#include "runtime/files/safetensors.h"
#include "runtime/program.h"

#include <functional>
#include <string>
#include <vector>

namespace trainc {

using warning = std::function<void(const std::string &)>;

// All parameters, with adapters added to the weights that they stand beside. What the module has no
// name for is written under its ONNX name, and warned of, as are constants, which the program has
// no values of. Throws `failure` (exit_disk).
void write_state_dict(const program &program, const arenas &arenas, output_file &file,
                      const warning &warn);

// Other values for a parameter than its own; empty: its own.
using other_values = std::function<std::vector<char>(const std::string &parameter)>;

// The same of `values` that are called what parameters are, such as gradients.
void write_module_tensors(const program &program, const std::vector<tensor_view> &values,
                          output_file &file, const warning &warn, const other_values &others = {});

// `state.<parameter>.<state>` for the states of trained parameters, and the number of updates:
// `state.<parameter>.step`, where PyTorch's optimizer has that. Throws `failure`: exit_disk, or
// exit_usage as check_has_numbers.
void write_optimizer_state(const program &program, const std::vector<tensor_view> &states,
                           int64_t updates, output_file &file, const warning &warn);

// Throws `failure` (exit_usage) where states are codes of 8 bits, which PyTorch has not.
void check_has_numbers(const std::vector<tensor_view> &states);

// Names of a checkpoint's states, "optimizer/exp_avg/h.0.weight", in parts.
struct state_name {
  std::string slot, parameter;
};
state_name state_name_of(const std::string &name);

// Means over the rows of a matrix are those over the columns of its transpose.
std::string slot_in_module(const std::string &slot, bool is_transposed);

} // namespace trainc
