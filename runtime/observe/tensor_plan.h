// SPDX-License-Identifier: Apache-2.0
//
// Which tensors the entry functions have, and where they lie when a step has ended.
#pragma once

#include "runtime/files/tensor_view.h"
#include "runtime/plan/plan.h"

#include <map>
#include <string>
#include <vector>

namespace trainc {

// What the name of a gradient begins with, before that of the value.
constexpr const char *of_gradient = "gradient of ";
inline bool is_gradient(const std::string &name) { return name.starts_with(of_gradient); }

struct placed_tensor {
  std::string name; // `h.0.mlp.act`, `gradient of h.0.mlp.act`
  arena_kind arena;
  int64_t offset; // bytes from the arena's base
  data_type type;
  std::vector<int64_t> shape;
  int64_t row_pitch; // elements from one row to the next; 0: they follow one another

  int64_t elements() const { return elements_of(shape); }
};

struct planned_function {
  std::vector<placed_tensor> arguments;         // as they are at its start
  std::vector<std::vector<placed_tensor>> made; // by each step
};

// By the function's name. Throws `failure` (exit_data) where the plan is not one of this trainer's
// compiler.
std::map<std::string, planned_function> placed_tensors(const plan &plan);

} // namespace trainc
