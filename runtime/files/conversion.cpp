// SPDX-License-Identifier: Apache-2.0
//
// Element conversions of the loader.
#include "runtime/files/conversion.h"

#include "runtime/kernels/narrow_float.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace trainc {
namespace {

template <typename T> constexpr bool is_narrow = !std::is_arithmetic_v<T>;
template <typename T> constexpr bool is_float_type = std::is_floating_point_v<T> || is_narrow<T>;

// Every value of From is a value of To: enough digits, and a sign where needed.
template <typename From, typename To> constexpr bool lossless() {
  if (std::is_same_v<From, To>)
    return true;
  if (is_narrow<From>)
    return std::is_floating_point_v<To>;
  if (std::is_same_v<To, bool> || (std::is_floating_point_v<From> && std::is_integral_v<To>))
    return false;
  return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits &&
         (std::is_signed_v<To> || !std::is_signed_v<From>);
}

} // namespace

bool converts_without_loss(file_type from, data_type to) {
  return with_type(from, [&](auto source) {
    return with_type(to,
                     [&](auto target) { return lossless<decltype(source), decltype(target)>(); });
  });
}

bool is_float(file_type type) {
  return with_type(type, [](auto element) { return is_float_type<decltype(element)>; });
}

bool converts_by_rounding(file_type from, data_type to) {
  return is_float(from) && (to == data_type::f32 || to == data_type::f64);
}

void convert(file_type from, const void *source, data_type to, void *target, int64_t count) {
  with_type(from, [&](auto source_zero) {
    with_type(to, [&](auto target_zero) {
      using source_element = decltype(source_zero);
      using target_element = decltype(target_zero);
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
  return with_type(type, [&](auto element) {
    using value = decltype(element);
    if constexpr (std::is_integral_v<value> && std::is_unsigned_v<value>)
      return static_cast<uint64_t>(std::numeric_limits<value>::max()) <
             static_cast<uint64_t>(bound);
    return false;
  });
}

} // namespace trainc
