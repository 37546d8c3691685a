// SPDX-License-Identifier: Apache-2.0
//
// The smaller and the larger of two numbers, for headers that emitted code includes: <algorithm>
// takes a compiler 0.2 s to read, which is as long as it needs for a whole emitted file.
#pragma once

namespace trainc {

template <typename T> constexpr T smaller_of(T a, T b) { return b < a ? b : a; }
template <typename T> constexpr T larger_of(T a, T b) { return a < b ? b : a; }
// `value`, or the nearer end of [low, high].
template <typename T> constexpr T clamped_to(T value, T low, T high) {
  return smaller_of(larger_of(value, low), high);
}

} // namespace trainc
