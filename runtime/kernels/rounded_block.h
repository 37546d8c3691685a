// SPDX-License-Identifier: Apache-2.0
//
// Floats as integers with a scale, 32 of them at a time.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace trainc {

constexpr int64_t rounded_block_size = 32;
constexpr int zero_of_four_bits = 8; // the integer that stands for 0; of 8 bits it is 0

struct rounded_block {
  bfloat16 scale;
  int8_t integers[rounded_block_size];
};

// To 8 bits the block's largest magnitude is 127 times its scale; to 4 its largest value is -8
// times its scale, negative or not. Values are rounded by the rounded scale to the nearest, ties
// away from zero: so what a scale loses costs accuracy in the largest value alone.
inline rounded_block round_block(const float *values, bool to_four_bits) {
  float largest = 0;
  for (int64_t i = 0; i < rounded_block_size; ++i)
    if (std::fabs(values[i]) > std::fabs(largest))
      largest = values[i];
  rounded_block block;
  block.scale = bfloat16(to_four_bits ? largest / -8 : std::fabs(largest) / 127);
  const auto scale = static_cast<float>(block.scale);
  const float low = to_four_bits ? 0 : -127, high = to_four_bits ? 15 : 127,
              zero = to_four_bits ? zero_of_four_bits : 0;
  for (int64_t i = 0; i < rounded_block_size; ++i) {
    const float number = scale == 0 ? zero : std::round(values[i] / scale) + zero;
    block.integers[i] = static_cast<int8_t>(std::clamp(number, low, high));
  }
  return block;
}

} // namespace trainc
