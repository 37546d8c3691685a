// SPDX-License-Identifier: Apache-2.0
//
// Whether floats are numbers, by their bits: a loop that vectorises.
#pragma once

#include "runtime/program.h"

#include <cstring>

namespace trainc {

enum class number_class { nan, not_finite };

template <typename bits> bool any_above(const char *data, int64_t bytes, bits limit) {
  bool found = false;
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof limit); ++i) {
    bits value;
    memcpy(&value, data + i * static_cast<int64_t>(sizeof limit), sizeof limit);
    found |= (value & (~bits{0} >> 1)) >= limit;
  }
  return found;
}

// Whether one of the elements is of the class; integers never are.
inline bool holds(number_class what, data_type type, const char *data, int64_t bytes) {
  const unsigned beyond_infinity = what == number_class::nan ? 1 : 0;
  if (type == data_type::f32)
    return any_above<uint32_t>(data, bytes, 0x7f800000u + beyond_infinity);
  return type == data_type::f64 &&
         any_above<uint64_t>(data, bytes, 0x7ff0000000000000u + beyond_infinity);
}

} // namespace trainc
