// SPDX-License-Identifier: Apache-2.0
//
// Reductions with one order on every machine: sixteen interleaved partial
// results along the innermost dimension, which the host compiler keeps in vector
// registers, then a fixed tree.
#pragma once

#include "runtime/kernels/math.h"

namespace trainc {

constexpr int lanes = 16;

#define ALWAYS_INLINED __attribute__((always_inline))

// Calls body(i, lane) for i in [begin, end) with lane = (i - begin) % 16. The body
// combines element i into partial result `lane`.
template <typename Index, typename Body>
TRAINC_INLINE void in_lanes(Index begin, Index end, Body body) {
  const Index whole = begin + (end - begin) / lanes * lanes;
  for (Index i = begin; i < whole; i += lanes)
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane)
      body(i + lane, lane);
  const int rest = static_cast<int>(end - whole);
  for (int lane = 0; lane < rest; ++lane)
    body(whole + lane, lane);
}

template <typename T, typename Combine>
TRAINC_INLINE T combine_lanes(const T *partial, Combine combine) {
  T left[lanes / 2];
  for (int i = 0; i < lanes / 2; ++i)
    left[i] = combine(partial[i], partial[i + lanes / 2]);
  for (int width = lanes / 4; width > 0; width /= 2)
    for (int i = 0; i < width; ++i)
      left[i] = combine(left[i], left[i + width]);
  return left[0];
}

template <typename T> TRAINC_INLINE T sum_lanes(const T *partial) {
  return combine_lanes(partial, [](T a, T b) { return a + b; });
}
template <typename T> TRAINC_INLINE T max_lanes(const T *partial) {
  return combine_lanes(partial, [](T a, T b) { return maximum(a, b); });
}
template <typename T> TRAINC_INLINE T min_lanes(const T *partial) {
  return combine_lanes(partial, [](T a, T b) { return minimum(a, b); });
}

// Sets `count` partial results to the neutral element of a reduction.
template <typename T> TRAINC_INLINE void set_lanes(T *partial, int count, T value) {
  for (int lane = 0; lane < count; ++lane)
    partial[lane] = value;
}

} // namespace trainc
