// SPDX-License-Identifier: Apache-2.0
//
// Sizes and names of element types in the formats the runtime reads and writes.
#pragma once

#include "runtime/program.h"

#include <cstring>
#include <type_traits>

namespace trainc {

constexpr int64_t bytes_of(data_type type) {
  switch (type) {
  case data_type::f32:
  case data_type::i32:
    return 4;
  case data_type::f64:
  case data_type::i64:
    return 8;
  case data_type::boolean:
    return 1;
  }
  return 0;
}

constexpr const char *name_of(data_type type) {
  switch (type) {
  case data_type::f32:
    return "float32";
  case data_type::f64:
    return "float64";
  case data_type::i64:
    return "int64";
  case data_type::i32:
    return "int32";
  case data_type::boolean:
    return "bool";
  }
  return "";
}

// The safetensors spelling.
constexpr const char *safetensors_name_of(data_type type) {
  switch (type) {
  case data_type::f32:
    return "F32";
  case data_type::f64:
    return "F64";
  case data_type::i64:
    return "I64";
  case data_type::i32:
    return "I32";
  case data_type::boolean:
    return "BOOL";
  }
  return "";
}

// C++ types of elements; those of bool are uint8_t.
template <typename T>
constexpr bool has_data_type =
    std::is_same_v<T, double> || std::is_same_v<T, float> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, uint8_t>;

// The type whose elements are of a C++ type.
template <typename T> constexpr data_type data_type_of(T /*zero*/) {
  if constexpr (std::is_same_v<T, double>)
    return data_type::f64;
  else if constexpr (std::is_same_v<T, float>)
    return data_type::f32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return data_type::i64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return data_type::i32;
  else {
    static_assert(has_data_type<T>, "no type of a trainer's data");
    return data_type::boolean;
  }
}

// An f32 or f64 in memory.
inline double number_at(data_type type, const char *place) {
  if (type == data_type::f64) {
    double value;
    memcpy(&value, place, sizeof value);
    return value;
  }
  float value;
  memcpy(&value, place, sizeof value);
  return static_cast<double>(value);
}

inline int64_t element_count(const tensor_place &tensor) {
  int64_t count = 1;
  for (int axis = 0; axis < tensor.rank; ++axis)
    count *= tensor.shape[axis];
  return count;
}

inline int64_t byte_count(const tensor_place &tensor) {
  return element_count(tensor) * bytes_of(tensor.type);
}

} // namespace trainc
