// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/quantized_weights.h"

#include "runtime/failure.h"
#include "runtime/kernels/rounded_block.h"

#include <cstring>
#include <span>

namespace trainc {
namespace {

number_form form_of_type(data_type type) {
  return type == data_type::u8     ? number_form::u8
         : type == data_type::i8   ? number_form::i8
         : type == data_type::bf16 ? number_form::bf16
         : type == data_type::f16  ? number_form::f16
                                   : number_form::f32;
}

packed_numbers numbers_of(const program &program, const arenas &arenas, const char *name) {
  for (const parameter_place &parameter : program.parameters)
    if (const tensor_place &tensor = parameter.tensor; strcmp(tensor.name, name) == 0)
      return {arenas[tensor.arena] + tensor.offset, form_of_type(tensor.type)};
  throw failure(exit_internal, std::string("a quantized weight has no tensor '") + name + "'");
}

// Whether exports have the integers, as the model's file has.
bool is_of_file(const program &program, const quantized_weight &weight) {
  for (const export_initializer &entry : program.exports)
    if (entry.integer_type && strcmp(entry.parameter_name, weight.integers) == 0)
      return true;
  return false;
}

// Whether the block of floats has these integers, from number `first` on, and this scale.
bool has_block(const quantized_layout &layout, const void *integers, int64_t first, bfloat16 scale,
               const float *floats) {
  const rounded_block block = round_block(floats, layout.bits == 4);
  const auto *bytes = static_cast<const uint8_t *>(integers);
  for (int64_t i = 0; i < rounded_block_size; ++i) {
    const int64_t at = first + i;
    const auto integer = static_cast<uint8_t>(block.integers[i]);
    const int own = layout.bits == 8 ? bytes[at] : at % 2 ? bytes[at / 2] >> 4 : bytes[at / 2] & 15;
    if (own != integer)
      return false;
  }
  return memcmp(&scale, &block.scale, sizeof scale) == 0;
}

} // namespace

const quantized_weight *quantized_form(const program &program, const std::string &parameter) {
  for (const quantized_weight &weight : program.quantized_weights)
    if (weight.integers == parameter)
      return &weight;
  return nullptr;
}

bool is_part_of_quantized(const program &program, const std::string &parameter) {
  for (const quantized_weight &weight : program.quantized_weights)
    if (weight.scales == parameter || (weight.zeros && weight.zeros == parameter))
      return true;
  return false;
}

std::vector<char> dequantized_values(const program &program, const arenas &arenas,
                                     const quantized_weight &weight) {
  const quantized_layout &layout = weight.layout;
  const int64_t count = layout.outer * layout.length * layout.inner;
  std::vector<char> values(static_cast<size_t>(count) * sizeof(float));
  const packed_numbers zeros =
      numbers_of(program, arenas, weight.zeros ? weight.zeros : weight.integers);
  dequantize_numbers(layout, numbers_of(program, arenas, weight.integers),
                     numbers_of(program, arenas, weight.scales), weight.zeros ? &zeros : nullptr,
                     values.data(), number_form::f32);
  return values;
}

bool has_floats_of(const program &program, const arenas &arenas, const quantized_weight &weight,
                   const char *floats) {
  if (is_of_file(program, weight)) {
    const std::vector<char> own = dequantized_values(program, arenas, weight);
    return memcmp(own.data(), floats, own.size()) == 0;
  }
  const packed_numbers integers = numbers_of(program, arenas, weight.integers),
                       scales = numbers_of(program, arenas, weight.scales);
  const int64_t blocks = weight.layout.outer * weight.layout.length / rounded_block_size;
  for (int64_t block = 0; block < blocks; ++block)
    if (!has_block(weight.layout, integers.data, block * rounded_block_size,
                   static_cast<const bfloat16 *>(scales.data)[block],
                   reinterpret_cast<const float *>(floats) + block * rounded_block_size))
      return false;
  return true;
}

} // namespace trainc
