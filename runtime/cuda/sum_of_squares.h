// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/cuda/kernels/reduce.h"

#include <cstdint>

namespace trainc {

// Of x[begin, end), in f64, by a block of so many threads; each gets it. `of_warp` is shared
// memory, which the block may use again when all of its threads are there.
template <int warps, typename T>
__device__ inline double sum_of_squares(const T *x, int64_t begin, int64_t end,
                                        double (&of_warp)[warps]) {
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += warps * 32) {
    const double value = x[i];
    sum += value * value;
  }
  return sum_of_block(sum, of_warp);
}

} // namespace trainc
