// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/quantized_weights.h"

#include "runtime/failure.h"

#include <cmath>
#include <cstring>
#include <span>

namespace trainc {
namespace {

std::span<const quantized_weight> quantized_weights_of(const program &program) {
  return {program.quantized_weights, static_cast<size_t>(program.quantized_weight_count)};
}

number_form form_of_type(data_type type) {
  return type == data_type::u8     ? number_form::u8
         : type == data_type::i8   ? number_form::i8
         : type == data_type::bf16 ? number_form::bf16
         : type == data_type::f16  ? number_form::f16
                                   : number_form::f32;
}

packed_numbers numbers_of(const program &program, const arenas &arenas, const char *name) {
  for (int64_t i = 0; i < program.parameter_count; ++i)
    if (const tensor_place &tensor = program.parameters[i].tensor; strcmp(tensor.name, name) == 0)
      return {arenas[tensor.arena] + tensor.offset, form_of_type(tensor.type)};
  throw failure(exit_internal, std::string("a quantized weight has no tensor '") + name + "'");
}

std::vector<char> values_with(const program &program, const arenas &arenas,
                              const quantized_weight &weight, const quantized_layout &layout) {
  const int64_t count = layout.outer * layout.length * layout.inner;
  std::vector<char> values(static_cast<size_t>(count) * sizeof(float));
  const packed_numbers zeros =
      numbers_of(program, arenas, weight.zeros ? weight.zeros : weight.integers);
  dequantize_numbers(layout, numbers_of(program, arenas, weight.integers),
                     numbers_of(program, arenas, weight.scales), weight.zeros ? &zeros : nullptr,
                     values.data(), number_form::f32);
  return values;
}

} // namespace

const quantized_weight *quantized_form(const program &program, const std::string &parameter) {
  for (const quantized_weight &weight : quantized_weights_of(program))
    if (weight.integers == parameter)
      return &weight;
  return nullptr;
}

bool is_part_of_quantized(const program &program, const std::string &parameter) {
  for (const quantized_weight &weight : quantized_weights_of(program))
    if (weight.scales == parameter || (weight.zeros && weight.zeros == parameter))
      return true;
  return false;
}

std::vector<char> dequantized_values(const program &program, const arenas &arenas,
                                     const quantized_weight &weight) {
  return values_with(program, arenas, weight, weight.layout);
}

bool is_rounded_from(const program &program, const arenas &arenas, const quantized_weight &weight,
                     const char *floats) {
  const std::vector<char> own = dequantized_values(program, arenas, weight);
  // What integers that are 1 larger would be tells the scale. Weights with zero points are those
  // of a file, which nothing has rounded here.
  quantized_layout next = weight.layout;
  std::vector<char> scaled;
  if (!weight.zeros) {
    --next.zero;
    scaled = values_with(program, arenas, weight, next);
  }
  for (size_t at = 0; at < own.size(); at += sizeof(float)) {
    float value, given, above;
    memcpy(&value, own.data() + at, sizeof value);
    memcpy(&given, floats + at, sizeof given);
    memcpy(&above, scaled.empty() ? own.data() + at : scaled.data() + at, sizeof above);
    const float step = scaled.empty() ? 1e-6f * std::fabs(value) : std::fabs(above - value);
    if (!(std::fabs(given - value) <= 1.01f * step))
      return false;
  }
  return true;
}

} // namespace trainc
