// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/tensor_plan.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/observe/plan_file.h"

#include <algorithm>
#include <strings.h>

namespace trainc {
namespace {

using nlohmann::json;

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

planned_tensor tensor_of(const json &tensor) {
  return {tensor.at("tensor").get<std::string>(), arena_of(tensor.at("arena").get<std::string>()),
          tensor.at("offset").get<int64_t>(), type_of(tensor.at("type").get<std::string>()),
          tensor.at("shape").get<std::vector<int64_t>>()};
}

planned_function function_of(const json &entry) {
  planned_function function;
  function.made.resize(entry.at("steps").get<size_t>());
  for (const json &tensor : entry.at("tensors"))
    if (tensor.at("arena") == "constants")
      continue;
    else if (tensor.at("argument").get<bool>())
      function.arguments.push_back(tensor_of(tensor));
    else
      function.made.at(tensor.at("first_step").get<size_t>()).push_back(tensor_of(tensor));
  return function;
}

} // namespace

int64_t planned_tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::map<std::string, planned_function> read_tensor_plan(const std::string &path) {
  const std::optional<json> plan = read_plan_file(path);
  if (!plan)
    throw failure(exit_data, path + ": cannot be read\n  try: the trainer in the whole folder that "
                                    "trainc wrote");
  std::map<std::string, planned_function> functions;
  try {
    for (const json &entry : plan->at("entries"))
      functions[entry.at("entry").get<std::string>()] = function_of(entry);
  } catch (const std::exception &) { // whatever is not as it should be
    throw failure(exit_data,
                  path + ": is not a memory plan of this version\n  try: compile the model again");
  }
  return functions;
}

} // namespace trainc
