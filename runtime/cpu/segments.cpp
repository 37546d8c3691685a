// SPDX-License-Identifier: Apache-2.0
//
// Threads share pieces of segments; a piece is summed in lanes, the pieces in order.
#include "runtime/kernels/segments.h"

#include "runtime/cpu/sum_of_squares.h"
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
    sums[piece] = sum_of_squares(x, first, std::min(first + size, end));
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
    int64_t low = 0, high = count; // the first segment that ends after `first`
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

template <typename T> void fill_with_zeros(int64_t elements, T *result) {
#pragma omp parallel for schedule(static) if (elements > few_elements)
  for (int64_t first = 0; first < elements; first += block_elements)
    std::fill(result + first, result + std::min(first + block_elements, elements), T(0));
}

constexpr int64_t mean_columns = 64; // sums side by side

template <typename T>
void find_mean_squares(int64_t count, int64_t, int64_t elements, const T *x, const int64_t *table,
                       T *result) {
  fill_with_zeros(elements, result);
  for (int64_t part = 0; part < count; ++part) {
    const int64_t *row = table + part * mean_squares_columns;
    const int64_t outer = row[2], kept = row[3], kept_stride = row[4], reduced = row[5],
                  reduced_stride = row[6];
    const T *from = x + row[0];
    T *to = result + row[1];
    const int64_t total = outer * kept * reduced;
    if (reduced_stride == 1) {
#pragma omp parallel for schedule(static) if (total > few_elements)
      for (int64_t line = 0; line < outer * kept; ++line) {
        const T *first = from + line / kept * kept * reduced + line % kept * kept_stride;
        to[line] = static_cast<T>(sum_of_squares(first, 0, reduced) / static_cast<double>(reduced));
      }
      continue;
    }
    const int64_t blocks = (kept + mean_columns - 1) / mean_columns;
#pragma omp parallel for schedule(static) if (total > few_elements)
    for (int64_t block = 0; block < outer * blocks; ++block) {
      const int64_t o = block / blocks, begin = block % blocks * mean_columns;
      const int64_t width = std::min(mean_columns, kept - begin);
      double sums[mean_columns] = {};
      const T *first = from + o * kept * reduced + begin * kept_stride;
      for (int64_t k = 0; k < reduced; ++k)
        for (int64_t i = 0; i < width; ++i) {
          const double value = first[k * reduced_stride + i * kept_stride];
          sums[i] += value * value;
        }
      for (int64_t i = 0; i < width; ++i)
        to[o * kept + begin + i] = static_cast<T>(sums[i] / static_cast<double>(reduced));
    }
  }
}

template <typename T>
void multiply_rows(int64_t count, int64_t, int64_t, int64_t elements, const T *row, const T *column,
                   const T *least, const int64_t *table, T *result) {
  fill_with_zeros(elements, result);
  for (int64_t part = 0; part < count; ++part) {
    const int64_t *at = table + part * product_columns;
    const int64_t outer = at[3], rows = at[4], columns = at[5];
    for (int64_t o = 0; o < outer; ++o) {
      const T *of_row = row + at[1] + o * rows;
      T *to = result + at[0] + o * rows * columns;
      if (at[2] < 0) {
        std::copy(of_row, of_row + rows, to);
        continue;
      }
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r)
        sum += static_cast<double>(of_row[r]);
      const double mean = std::max(sum / static_cast<double>(rows), static_cast<double>(*least));
      const T *of_column = column + at[2] + o * columns;
#pragma omp parallel for schedule(static) if (rows * columns > few_elements)
      for (int64_t r = 0; r < rows; ++r) {
        const double factor = static_cast<double>(of_row[r]) / mean;
#pragma omp simd
        for (int64_t c = 0; c < columns; ++c)
          to[r * columns + c] = static_cast<T>(factor * static_cast<double>(of_column[c]));
      }
    }
  }
}

} // namespace

DEFINE_SEGMENTS

} // namespace trainc
