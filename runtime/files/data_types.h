// SPDX-License-Identifier: Apache-2.0
//
// Sizes and names of element types in the formats the runtime reads and writes.
#pragma once

#include "runtime/kernels/narrow_float.h"
#include "runtime/program.h"

#include <cstring>
#include <vector>

namespace trainc {

struct data_type_row {
  data_type type;
  int64_t bytes;
  const char *name;        // as NumPy has it
  const char *safetensors; // the spelling there
  uint64_t onnx;           // the number there
  const char *npy; // the code in .npy files, without byte order; bfloat16 is none of NumPy's
};

constexpr data_type_row data_type_rows[] = {
    {data_type::f32, 4, "float32", "F32", 1, "f4"},
    {data_type::f64, 8, "float64", "F64", 11, "f8"},
    {data_type::i64, 8, "int64", "I64", 7, "i8"},
    {data_type::i32, 4, "int32", "I32", 6, "i4"},
    {data_type::boolean, 1, "bool", "BOOL", 9, "b1"},
    {data_type::i8, 1, "int8", "I8", 3, "i1"},
    {data_type::i16, 2, "int16", "I16", 5, "i2"},
    {data_type::u8, 1, "uint8", "U8", 2, "u1"},
    {data_type::u16, 2, "uint16", "U16", 4, "u2"},
    {data_type::u32, 4, "uint32", "U32", 12, "u4"},
    {data_type::bf16, 2, "bfloat16", "BF16", 16, ""},
    {data_type::f16, 2, "float16", "F16", 10, "f2"},
};

constexpr const data_type_row &row_of(data_type type) {
  const data_type_row *row = data_type_rows;
  while (row->type != type)
    ++row;
  return *row;
}

constexpr int64_t bytes_of(data_type type) { return row_of(type).bytes; }
constexpr const char *name_of(data_type type) { return row_of(type).name; }
constexpr const char *safetensors_name_of(data_type type) { return row_of(type).safetensors; }

// Calls `use` with a zero of the C++ type.
template <typename F> auto with_type(data_type type, F use) {
  switch (type) {
  case data_type::f32:
    return use(float{});
  case data_type::f64:
    return use(double{});
  case data_type::i64:
    return use(int64_t{});
  case data_type::i32:
    return use(int32_t{});
  case data_type::i8:
    return use(int8_t{});
  case data_type::i16:
    return use(int16_t{});
  case data_type::u8:
    return use(uint8_t{});
  case data_type::u16:
    return use(uint16_t{});
  case data_type::u32:
    return use(uint32_t{});
  case data_type::bf16:
    return use(bfloat16{});
  case data_type::f16:
    return use(float16{});
  case data_type::boolean:
    break;
  }
  return use(bool{});
}

constexpr bool is_integer(data_type type) {
  return type != data_type::f32 && type != data_type::f64 && type != data_type::bf16 &&
         type != data_type::f16 && type != data_type::boolean;
}

template <typename Number> double number_as(const char *place) {
  Number value;
  memcpy(&value, place, sizeof value);
  return static_cast<double>(value);
}

// A float of any type in memory.
inline double number_at(data_type type, const char *place) {
  return type == data_type::f64    ? number_as<double>(place)
         : type == data_type::bf16 ? number_as<bfloat16>(place)
         : type == data_type::f16  ? number_as<float16>(place)
                                   : number_as<float>(place);
}

inline int64_t element_count(const tensor_place &tensor) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor.rank; ++axis)
    count *= tensor.shape[axis];
  return count;
}

inline std::vector<int64_t> shape_of(const tensor_place &tensor) {
  return {tensor.shape, tensor.shape + tensor.rank};
}
inline std::vector<int64_t> shape_of(const quantized_weight &weight) {
  return {weight.shape, weight.shape + weight.rank};
}

inline int64_t byte_count(const tensor_place &tensor) {
  return element_count(tensor) * bytes_of(tensor.type);
}

} // namespace trainc
