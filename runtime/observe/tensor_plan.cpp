// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/tensor_plan.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"

#include <algorithm>
#include <strings.h>

namespace trainc {
namespace {

arena_kind arena_of(const std::string &name) {
  constexpr const char *names[] = {"parameters", "gradients", "optimizer_state", "activations",
                                   "workspace",  "stash",     "frozen"};
  for (size_t kind = 0; kind < std::size(names); ++kind)
    if (name == names[kind])
      return static_cast<arena_kind>(kind);
  throw std::out_of_range(name);
}

data_type type_of(const std::string &name) {
  for (const data_type_row &row : data_type_rows)
    if (strcasecmp(name.c_str(), row.safetensors) == 0)
      return row.type;
  throw std::out_of_range(name);
}

placed_tensor placed(const planned_tensor &tensor) {
  return {tensor.name,          arena_of(tensor.arena), tensor.offset,
          type_of(tensor.type), tensor.shape,           tensor.row_pitch};
}

planned_function function_of(const planned_entry &entry) {
  planned_function function;
  function.made.resize(entry.steps.size());
  for (const planned_tensor &tensor : entry.tensors)
    if (tensor.arena == "constants")
      continue;
    else if (tensor.is_argument)
      function.arguments.push_back(placed(tensor));
    else
      function.made[static_cast<size_t>(tensor.first)].push_back(placed(tensor));
  return function;
}

} // namespace

std::map<std::string, planned_function> placed_tensors(const plan &plan) {
  std::map<std::string, planned_function> functions;
  try {
    for (const planned_entry &entry : plan.entries)
      functions[entry.name] = function_of(entry);
  } catch (const std::out_of_range &unknown) {
    throw failure(exit_data, std::string("the plan has an arena or a type '") + unknown.what() +
                                 "', which is not known\n  try: compile the model again");
  }
  return functions;
}

} // namespace trainc
