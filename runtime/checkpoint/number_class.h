// SPDX-License-Identifier: Apache-2.0
//
// Whether floats are numbers, by their bits: a loop that vectorises.
#pragma once

#include "runtime/program.h"

#include <cstring>

namespace trainc {

enum class number_class { nan, nan_or_plus_infinity, not_finite };

// `infinity`: its bits, those of the exponent.
template <typename bits>
bool holds_bits(number_class what, const char *data, int64_t bytes_of_data, bits infinity) {
  constexpr auto all = static_cast<bits>(~bits{0});
  constexpr auto sign = static_cast<bits>(all ^ (all >> 1));
  const auto least = static_cast<bits>(what == number_class::nan ? infinity + 1 : infinity);
  const auto allowed =
      static_cast<bits>(what == number_class::nan_or_plus_infinity ? sign | infinity : 0);
  bool found = false;
  for (int64_t i = 0; i < bytes_of_data / static_cast<int64_t>(sizeof infinity); ++i) {
    bits value;
    memcpy(&value, data + i * static_cast<int64_t>(sizeof infinity), sizeof infinity);
    found |= ((value & (all ^ sign)) >= least) & (value != allowed);
  }
  return found;
}

// Whether one of the elements is of the class; integers never are.
inline bool holds(number_class what, data_type type, const char *data, int64_t bytes) {
  if (type == data_type::f32)
    return holds_bits<uint32_t>(what, data, bytes, 0x7f800000u);
  if (type == data_type::bf16)
    return holds_bits<uint16_t>(what, data, bytes, 0x7f80);
  return type == data_type::f64 && holds_bits<uint64_t>(what, data, bytes, 0x7ff0000000000000u);
}

} // namespace trainc
