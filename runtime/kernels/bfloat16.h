// SPDX-License-Identifier: Apache-2.0
//
// A number of 16 bits in memory: the upper half of a float. Arithmetic is done on floats.
#pragma once

#include "runtime/kernels/inline.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace trainc {

// The nearest number of a bf16, of two equally near ones the even one: its bits. NaN stays NaN.
TRAINC_INLINE uint16_t bits_of_nearest_bfloat16(float value) {
  const auto whole = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = whole + 0x7fffu + ((whole >> 16) & 1u);
  const uint32_t quiet = whole | 0x400000u;
  const bool is_nan = (whole & 0x7fffffffu) > 0x7f800000u;
  return static_cast<uint16_t>((is_nan ? quiet : rounded) >> 16);
}

// The same as a float.
TRAINC_INLINE float nearest_bfloat16(float value) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits_of_nearest_bfloat16(value)) << 16);
}
TRAINC_INLINE float nearest_bfloat16(double value) {
  return nearest_bfloat16(static_cast<float>(value));
}

// Loops over elements vectorise where these are converted in place, and not copied.
struct bfloat16 {
  uint16_t bits;

  bfloat16() = default;
  template <typename Number>
  requires std::is_arithmetic_v<Number> TRAINC_INLINE explicit bfloat16(Number value)
      : bits(bits_of_nearest_bfloat16(static_cast<float>(value))) {}
  TRAINC_INLINE bfloat16 &operator=(float value) {
    bits = bits_of_nearest_bfloat16(value);
    return *this;
  }

  // NOLINTNEXTLINE(google-explicit-constructor): every value is one of a float
  TRAINC_INLINE operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

TRAINC_INLINE bfloat16 bfloat16_of(uint16_t bits) {
  bfloat16 number;
  number.bits = bits;
  return number;
}

} // namespace trainc
