// SPDX-License-Identifier: Apache-2.0
//
// Pools of all kinds, and what they give by plain loops.
#pragma once

#include "runtime/kernels/pool.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainc {

struct pool_case {
  int64_t planes;
  space_sizes input, kernel, stride, dilation, before, behind;

  pool_windows windows() const {
    pool_windows all = {planes, input, kernel, {}, stride, dilation, before};
    for (int d = 0; d < max_space; ++d)
      all.result.of[d] =
          (input.of[d] + before.of[d] + behind.of[d] - (kernel.of[d] - 1) * dilation.of[d] - 1) /
              stride.of[d] +
          1;
    return all;
  }
  int64_t inputs() const { return planes * input.count(); }
  int64_t results() const { return planes * windows().result.count(); }
};

inline std::vector<pool_case> pool_cases() {
  constexpr space_sizes ones = {{1, 1, 1}}, zeros = {{0, 0, 0}};
  return {
      {64, {{1, 32, 32}}, {{1, 3, 3}}, {{1, 2, 2}}, ones, {{0, 1, 1}}, {{0, 1, 1}}},
      {5, {{1, 12, 14}}, {{1, 2, 2}}, {{1, 2, 2}}, ones, zeros, zeros},
      {3, {{1, 13, 9}}, {{1, 3, 2}}, ones, {{1, 2, 3}}, {{0, 2, 1}}, {{0, 1, 2}}},
      {2, {{1, 1, 37}}, {{1, 1, 5}}, {{1, 1, 3}}, ones, {{0, 0, 2}}, {{0, 0, 3}}},
      {4, {{5, 4, 7}}, {{2, 3, 2}}, {{2, 1, 3}}, {{3, 1, 1}}, {{1, 2, 0}}, {{0, 0, 1}}},
      {7, {{1, 6, 5}}, {{1, 6, 5}}, ones, ones, zeros, zeros},
      {1, ones, ones, ones, ones, zeros, zeros},
      {2, {{1, 3, 3}}, {{1, 2, 2}}, {{1, 5, 5}}, ones, zeros, zeros},
  };
}

// Distinct but for some ties, infinities and, where asked for, what is not a number.
inline std::vector<double> pool_values(int64_t count, bool with_nan) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i * 7919 % 1009) / 64 - 7);
  for (int64_t i = 3; i < count; i += 11)
    values[static_cast<size_t>(i)] = values[static_cast<size_t>(i - 1)];
  for (int64_t i = 5; i < count; i += 17)
    values[static_cast<size_t>(i)] = -INFINITY;
  for (int64_t i = 8; with_nan && i < count; i += 23)
    values[static_cast<size_t>(i)] = NAN;
  return values;
}

// Calls visit(point, place) for all that meet, in order of points, then taps.
template <typename Visit> void for_each_pooled(const pool_case &problem, Visit visit) {
  const pool_windows windows = problem.windows();
  const auto &[planes, input, kernel, result, stride, dilation, before] = windows;
  int64_t index = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t a = 0; a < result.of[0]; ++a)
      for (int64_t b = 0; b < result.of[1]; ++b)
        for (int64_t c = 0; c < result.of[2]; ++c, ++index)
          for (int64_t tap = 0; tap < kernel.count(); ++tap) {
            const int64_t i = a * stride.of[0] +
                              tap / (kernel.of[1] * kernel.of[2]) * dilation.of[0] - before.of[0];
            const int64_t j = b * stride.of[1] +
                              tap / kernel.of[2] % kernel.of[1] * dilation.of[1] - before.of[1];
            const int64_t k = c * stride.of[2] + tap % kernel.of[2] * dilation.of[2] - before.of[2];
            if (i >= 0 && i < input.of[0] && j >= 0 && j < input.of[1] && k >= 0 && k < input.of[2])
              visit(index, ((plane * input.of[0] + i) * input.of[1] + j) * input.of[2] + k);
          }
}

// For each window where x is largest.
inline std::vector<int64_t> largest_places(const pool_case &problem, const std::vector<double> &x) {
  std::vector<int64_t> places(static_cast<size_t>(problem.results()), -1);
  for_each_pooled(problem, [&](int64_t point, int64_t place) {
    int64_t &best = places[static_cast<size_t>(point)];
    const double value = x[static_cast<size_t>(place)];
    if (best < 0 || value > x[static_cast<size_t>(best)] || std::isnan(value))
      best = place;
  });
  return places;
}

#define WINDOWS_OF(problem)                                                                        \
  (problem).planes, (problem).input, (problem).kernel, (problem).windows().result,                 \
      (problem).stride, (problem).dilation, (problem).before

} // namespace trainc
