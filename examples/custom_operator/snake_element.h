// SPDX-License-Identifier: Apache-2.0
//
// One element of Snake, for both targets.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

template <typename T> ON_BOTH T snake_of(T scale, T x, T alpha) {
  const T sine = std::sin(alpha * x);
  return scale * (x + sine * sine / alpha);
}

template <typename T> ON_BOTH T slope_of_x(T scale, T x, T alpha) {
  return scale * (1 + std::sin(2 * alpha * x));
}

template <typename T> ON_BOTH T slope_of_alpha(T scale, T x, T alpha) {
  const T sine = std::sin(alpha * x);
  return scale * (x * std::sin(2 * alpha * x) - sine * sine / alpha) / alpha;
}
