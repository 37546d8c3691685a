// SPDX-License-Identifier: Apache-2.0
//
// Element conversions of the loader.
#include "runtime/files/conversion.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace trainc {
namespace {

// Bits of a float of 16, whose values f32 has all.
struct half {
  uint16_t bits;

  template <typename T> explicit operator T() const { return static_cast<T>(value()); }
  float value() const {
    constexpr uint32_t largest_exponent = 31, bias = 15, bias_of_f32 = 127;
    const uint32_t exponent = bits >> 10 & largest_exponent, fraction = bits & 0x3ff;
    const uint32_t wide_exponent =
        exponent == largest_exponent ? 255 : exponent + bias_of_f32 - bias; // 255: not finite
    const float size = exponent == 0 ? static_cast<float>(fraction) * 0x1p-24f
                                     : std::bit_cast<float>(wide_exponent << 23 | fraction << 13);
    return bits >> 15 ? -size : size;
  }
};
struct bfloat {
  uint16_t bits; // the upper half of an f32

  template <typename T> explicit operator T() const {
    return static_cast<T>(std::bit_cast<float>(uint32_t{bits} << 16));
  }
};
template <typename T> constexpr bool is_half = std::is_same_v<T, half> || std::is_same_v<T, bfloat>;
template <typename T> constexpr bool is_float_type = std::is_floating_point_v<T> || is_half<T>;

// Calls `use` with a null pointer of the C++ type.
template <typename F> auto with_type(file_type type, F use) {
  switch (type) {
  case file_type::f32:
    return use(static_cast<float *>(nullptr));
  case file_type::f64:
    return use(static_cast<double *>(nullptr));
  case file_type::i8:
    return use(static_cast<int8_t *>(nullptr));
  case file_type::i16:
    return use(static_cast<int16_t *>(nullptr));
  case file_type::i32:
    return use(static_cast<int32_t *>(nullptr));
  case file_type::i64:
    return use(static_cast<int64_t *>(nullptr));
  case file_type::u8:
    return use(static_cast<uint8_t *>(nullptr));
  case file_type::u16:
    return use(static_cast<uint16_t *>(nullptr));
  case file_type::u32:
    return use(static_cast<uint32_t *>(nullptr));
  case file_type::f16:
    return use(static_cast<half *>(nullptr));
  case file_type::bf16:
    return use(static_cast<bfloat *>(nullptr));
  default:
    return use(static_cast<bool *>(nullptr));
  }
}

// Every value of From is a value of To: enough digits, and a sign where needed.
template <typename From, typename To> constexpr bool lossless() {
  if (std::is_same_v<From, To>)
    return true;
  if (is_half<From>)
    return std::is_floating_point_v<To>;
  if (std::is_same_v<To, bool> || (std::is_floating_point_v<From> && std::is_integral_v<To>))
    return false;
  return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits &&
         (std::is_signed_v<To> || !std::is_signed_v<From>);
}

} // namespace

bool converts_without_loss(file_type from, data_type to) {
  return with_type(from, [&](auto *source) {
    return with_type(to, [&](auto target) {
      return lossless<std::remove_pointer_t<decltype(source)>, decltype(target)>();
    });
  });
}

bool is_float(file_type type) {
  return with_type(
      type, [](auto *element) { return is_float_type<std::remove_pointer_t<decltype(element)>>; });
}

bool converts_by_rounding(file_type from, data_type to) {
  return is_float(from) && (to == data_type::f32 || to == data_type::f64);
}

void convert(file_type from, const void *source, data_type to, void *target, int64_t count) {
  with_type(from, [&](auto *source_type) {
    with_type(to, [&](auto target_type) {
      using source_element = std::remove_pointer_t<decltype(source_type)>;
      using target_element = decltype(target_type);
      auto in = static_cast<const char *>(source);
      auto out = static_cast<target_element *>(target);
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<source_element, bool>) {
          out[i] = static_cast<target_element>(in[i] != 0); // a file may hold any byte
        } else {
          source_element value = {};
          memcpy(&value, in + i * static_cast<int64_t>(sizeof value), sizeof value);
          // A signed char here is a small number, not a character.
          out[i] = static_cast<target_element>(value); // NOLINT(bugprone-signed-char-misuse)
        }
      }
    });
  });
}

bool always_below(file_type type, int64_t bound) {
  return with_type(type, [&](auto *element) {
    using value = std::remove_pointer_t<decltype(element)>;
    if constexpr (std::is_integral_v<value> && std::is_unsigned_v<value>)
      return static_cast<uint64_t>(std::numeric_limits<value>::max()) <
             static_cast<uint64_t>(bound);
    return false;
  });
}

} // namespace trainc
