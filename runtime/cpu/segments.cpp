// SPDX-License-Identifier: Apache-2.0
//
// Threads share pieces of segments; a piece is summed in lanes, the pieces in order.
#include "runtime/kernels/segments.h"

#include "runtime/kernels/lanes.h"
#include "runtime/kernels/segments_forms.h"

#include <algorithm>

namespace trainc {

namespace {

constexpr int64_t few_elements = 16384; // not worth waking threads for
constexpr int64_t block_elements = 16384;

template <typename T>
void find_norms(int64_t count, int64_t pieces, int64_t elements, const T *x,
                const int64_t *segments, double *norms, double *sums) {
#pragma omp parallel for schedule(static, 1) if (elements > few_elements)
  for (int64_t piece = 0; piece < count * pieces; ++piece) {
    const int64_t begin = segments[2 * (piece / pieces)], end = segments[2 * (piece / pieces) + 1];
    const int64_t size = (end - begin + pieces - 1) / pieces;
    const int64_t first = std::min(begin + piece % pieces * size, end);
    double partial[lanes];
    set_lanes(partial, lanes, 0.0);
    in_lanes(first, std::min(first + size, end), [&](int64_t i, int lane) {
      const double value = x[i];
      partial[lane] += value * value;
    });
    sums[piece] = sum_lanes(partial);
  }
  for (int64_t s = 0; s < count; ++s) {
    double total = 0;
    for (int64_t piece = 0; piece < pieces; ++piece)
      total += sums[s * pieces + piece];
    norms[s] = sqrt(total);
  }
}

template <typename T>
void spread_values(int64_t count, int64_t elements, const T *values, const int64_t *segments,
                   T *result) {
#pragma omp parallel for schedule(static) if (elements > few_elements)
  for (int64_t first = 0; first < elements; first += block_elements) {
    const int64_t last = std::min(first + block_elements, elements);
    int64_t low = 0, high = count; // the first segment that ends behind `first`
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (segments[2 * middle + 1] > first)
        high = middle;
      else
        low = middle + 1;
    }
    int64_t i = first;
    for (int64_t s = low; i < last; ++s) {
      const int64_t begin = s < count ? std::clamp(segments[2 * s], i, last) : last;
      const int64_t end = s < count ? std::clamp(segments[2 * s + 1], begin, last) : last;
      std::fill(result + i, result + begin, T(0));
      if (begin < end)
        std::fill(result + begin, result + end, values[s]);
      i = end;
    }
  }
}

} // namespace

DEFINE_SEGMENTS

} // namespace trainc
