// SPDX-License-Identifier: Apache-2.0
//
// Numbers of 16 bits in memory. Arithmetic is done on floats. Conversions are integer formulas,
// which vectorise and give the same bits on every machine, and a GPU's instructions, which give
// those bits, too, but of NaN.
#pragma once

#include "runtime/kernels/inline.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace trainc {

// Both formats: the bits of the nearest number, of two equally near ones the even one, and a
// number's value. What is too large becomes infinite. NaN stays NaN.

// The upper half of a float.
struct bfloat16_format {
  TRAINC_INLINE static uint16_t nearest(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const auto whole = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = whole + 0x7fffu + ((whole >> 16) & 1u);
    const uint32_t quiet = whole | 0x400000u;
    const bool is_nan = (whole & 0x7fffffffu) > 0x7f800000u;
    return static_cast<uint16_t>((is_nan ? quiet : rounded) >> 16);
#endif
  }
  TRAINC_INLINE static float value_of(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

// IEEE's: 5 bits of exponent, 10 of fraction.
struct float16_format {
  TRAINC_INLINE static uint16_t nearest(float value) {
#ifdef __CUDA_ARCH__
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    const auto whole = std::bit_cast<int32_t>(value);
    const int32_t sign = whole >> 16 & 0x8000, size = whole & 0x7fffffff;
    const int32_t normal = (size - bias + 0xfff + (size >> 13 & 1)) >> 13;
    // Neighbours are 2^-24 apart, as floats from 0.5 on: the sum rounds.
    const int32_t subnormal =
        std::bit_cast<int32_t>(std::bit_cast<float>(size) + 0.5f) - std::bit_cast<int32_t>(0.5f);
    const int32_t not_finite = chosen(size > infinite, 0x7e00 | (size >> 13 & 0x3ff), 0x7c00);
    const int32_t finite = chosen(size < least_normal, subnormal, normal);
    return static_cast<uint16_t>(sign | chosen(size < too_large, finite, not_finite));
#endif
  }
  TRAINC_INLINE static float value_of(uint16_t bits) {
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const int32_t size = (bits & 0x7fff) << 13;
    const int32_t subnormal = std::bit_cast<int32_t>(std::bit_cast<float>(size + least_normal) -
                                                     std::bit_cast<float>(least_normal));
    const int32_t finite = chosen(size < 0x00800000, subnormal, size + bias);
    const int32_t value = chosen(size < 0x0f800000, finite, size + 2 * bias);
    return std::bit_cast<float>(static_cast<uint32_t>(value) | static_cast<uint32_t>(bits & 0x8000)
                                                                   << 16);
#endif
  }

private:
  // As floats: 2^-14, 2^16, infinity; and what the exponents differ by.
  static constexpr int32_t least_normal = 0x38800000, too_large = 0x47800000, infinite = 0x7f800000;
  static constexpr int32_t bias = 0x38000000;

  // Without a branch, which g++ makes of a condition before a sum of floats.
  TRAINC_INLINE static int32_t chosen(bool first, int32_t a, int32_t b) {
    const int32_t mask = -static_cast<int32_t>(first);
    return (a & mask) | (b & ~mask);
  }
};

// Loops over elements vectorise where these are converted in place, and not copied.
template <typename Format> struct narrow_float {
  uint16_t bits;

  narrow_float() = default;
  template <typename Number>
  requires std::is_convertible_v<Number, float> TRAINC_INLINE explicit narrow_float(Number value)
      : bits(Format::nearest(static_cast<float>(value))) {}
  TRAINC_INLINE narrow_float &operator=(float value) {
    bits = Format::nearest(value);
    return *this;
  }

  // NOLINTNEXTLINE(google-explicit-constructor): every value is one of a float
  TRAINC_INLINE operator float() const { return Format::value_of(bits); }

  TRAINC_INLINE static narrow_float of_bits(uint16_t bits) {
    narrow_float number;
    number.bits = bits;
    return number;
  }

  // The nearest of these numbers, as a float.
  TRAINC_INLINE static float nearest(float value) {
    return Format::value_of(Format::nearest(value));
  }
  TRAINC_INLINE static float nearest(double value) { return nearest(static_cast<float>(value)); }
};

template <typename T> constexpr bool is_narrow_v = false;
template <typename Format> constexpr bool is_narrow_v<narrow_float<Format>> = true;

using bfloat16 = narrow_float<bfloat16_format>;
using float16 = narrow_float<float16_format>;

} // namespace trainc
