// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/lanes.h"

#include <cstdint>

namespace trainc {

// Of x[begin, end), in f64 and in lanes.
template <typename T> double sum_of_squares(const T *x, int64_t begin, int64_t end) {
  double partial[lanes];
  set_lanes(partial, lanes, 0.0);
  in_lanes(begin, end, [&](int64_t i, int lane) {
    const double value = x[i];
    partial[lane] += value * value;
  });
  return sum_lanes(partial);
}

} // namespace trainc
