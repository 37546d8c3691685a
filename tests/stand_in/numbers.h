// SPDX-License-Identifier: Apache-2.0
//
// Numbers as a GPU's libraries read and round them.
#pragma once

#include <cstdint>
#include <cstring>

namespace trainc::stand_in {

// Rounded to the 11 significant bits that a tensor core keeps of an f32.
inline float rounded_to_tf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000u) != 0x7f800000u)
    bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
  std::memcpy(&x, &bits, 4);
  return x;
}

// A bf16 is the upper half of a float.
inline float widened(uint16_t number) {
  const uint32_t bits = static_cast<uint32_t>(number) << 16;
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline uint16_t rounded_to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return 0x7fff; // NaN, as the device has it
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// f16, as this machine's compiler converts it.
inline float widened_f16(uint16_t number) {
  _Float16 x;
  std::memcpy(&x, &number, 2);
  return static_cast<float>(x);
}

inline uint16_t rounded_to_f16(float x) {
  const auto rounded = static_cast<_Float16>(x);
  uint16_t bits;
  std::memcpy(&bits, &rounded, 2);
  return bits;
}

} // namespace trainc::stand_in
