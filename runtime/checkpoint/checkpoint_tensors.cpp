// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint holds: the tensors of a run's state, and which values they may have.
#include "runtime/checkpoint/checkpoint.h"

#include "runtime/checkpoint/number_class.h"
#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/files/data_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace trainc {

static std::string name_of_state(const std::string &slot, const std::string &parameter) {
  return state_prefix + slot + "/" + parameter;
}

std::vector<tensor_view> parameter_tensors(const program &program, const arenas &arenas) {
  std::vector<tensor_view> result;
  for (const parameter_place &parameter : program.parameters) {
    const tensor_place &tensor = parameter.tensor;
    result.push_back(view_of(tensor, tensor.name, arenas[tensor.arena] + tensor.offset));
  }
  return result;
}

std::vector<tensor_view> kept_parameter_tensors(const program &program, const arenas &arenas) {
  std::vector<tensor_view> result = parameter_tensors(program, arenas);
  result.resize(static_cast<size_t>(kept_parameters(program)));
  return result;
}

tensor_view floats_beside(const program &program, const tensor_view &frozen,
                          std::vector<char> &values) {
  tensor_view floats = frozen;
  floats.type = data_type::f32;
  if (const quantized_weight *form = quantized_form(program, frozen.name))
    floats.shape = shape_of(*form);
  floats.bytes = elements_of(floats.shape) * bytes_of(floats.type);
  values.resize(static_cast<size_t>(floats.bytes));
  floats.data = values.data();
  return floats;
}

bool has_values_of(const program &program, const arenas &arenas, const tensor_view &frozen,
                   const char *floats) {
  if (const quantized_weight *form = quantized_form(program, frozen.name))
    return has_floats_of(program, arenas, *form, floats);
  const int64_t count = frozen.bytes / bytes_of(frozen.type);
  for (int64_t i = 0; i < count; ++i) {
    float value;
    memcpy(&value, floats + i * static_cast<int64_t>(sizeof value), sizeof value);
    const double own = number_at(frozen.type, frozen.data + i * bytes_of(frozen.type));
    const float rounded = frozen.type == data_type::bf16  ? static_cast<float>(bfloat16(value))
                          : frozen.type == data_type::f16 ? static_cast<float>(float16(value))
                                                          : value;
    if (!(own == static_cast<double>(rounded)) && !(std::isnan(own) && std::isnan(rounded)))
      return false;
  }
  return true;
}

static constexpr const char *average_state = "ema"; // dialects/train/parameter_average.h

bool keeps_average(const program &program) {
  return std::ranges::find(program.state_names, std::string_view(average_state)) !=
         program.state_names.end();
}

std::vector<tensor_view> averaged_tensors(const program &program, const arenas &arenas) {
  std::vector<tensor_view> result = kept_parameter_tensors(program, arenas);
  for (size_t i = 0; i < result.size(); ++i)
    if (program.parameters[i].role == parameter_role::trained)
      result[i].name = name_of_state(average_state, result[i].name);
  return result;
}

std::vector<tensor_view> state_tensors(const program &program, const arenas &arenas) {
  std::vector<tensor_view> result = kept_parameter_tensors(program, arenas);
  if (!program.state_places.empty()) {
    for (const tensor_place &place : program.state_places) {
      result.push_back(view_of(place, std::string(state_prefix) + place.name,
                               arenas[arena_kind::optimizer_state] + place.offset));
    }
    return result;
  }
  for (int64_t slot = 0; slot < std::ssize(program.state_names); ++slot)
    for (const parameter_place &parameter : program.parameters) {
      if (parameter.role != parameter_role::trained)
        continue;
      char *base = arenas[arena_kind::optimizer_state] + slot * program.optimizer_slot_bytes;
      result.push_back(view_of(parameter.tensor,
                               name_of_state(program.state_names[slot], parameter.tensor.name),
                               base + parameter.tensor.offset));
    }
  return result;
}

std::vector<tensor_view> state_tensors(const program &program) {
  char nowhere = 0; // a null pointer has no offsets
  arenas places = {};
  for (char *&base : places.base)
    base = &nowhere;
  std::vector<tensor_view> result = state_tensors(program, places);
  for (tensor_view &tensor : result)
    tensor.data = nullptr;
  return result;
}

// A parameter that is not finite, or a state that is not a number, would spoil the next step and
// all after it. -infinity is sound where the model has it.
bool is_sound(const program &program, size_t number, data_type type, const char *data,
              int64_t bytes) {
  if (number >= static_cast<size_t>(kept_parameters(program)))
    return !holds(number_class::nan, type, data, bytes);
  const parameter_place &parameter = program.parameters[number];
  const number_class refused =
      parameter.is_infinite ? number_class::nan_or_plus_infinity : number_class::not_finite;
  return parameter.role != parameter_role::trained || !holds(refused, type, data, bytes);
}

} // namespace trainc
