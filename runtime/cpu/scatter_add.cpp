// SPDX-License-Identifier: Apache-2.0
//
// Threads share the columns, never a column's updates: each element of the table
// gets its updates in ascending order, for any number of threads.
#include "runtime/kernels/scatter_add.h"

#include "runtime/kernels/scatter_add_forms.h"

#include <cstring>

namespace trainc {

namespace {

constexpr int64_t column_block = 256;

template <typename Index, typename T>
void add_rows(int64_t count, int64_t rows, int64_t columns, const Index *indices, const T *updates,
              T *table) {
#pragma omp parallel for schedule(static) if (count * columns > 8192)
  for (int64_t first = 0; first < columns; first += column_block) {
    const int64_t width = columns - first < column_block ? columns - first : column_block;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = indices[i];
      if (row < 0 || row >= rows)
        continue;
      T *to = table + row * columns + first;
      const T *from = updates + i * columns + first;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j)
        to[j] += from[j];
    }
  }
}

template <typename T> void set_zero(int64_t rows, int64_t columns, T *table) {
  constexpr int64_t block_rows = 64;
#pragma omp parallel for schedule(static) if (rows * columns > 65536)
  for (int64_t row = 0; row < rows; row += block_rows) {
    const int64_t count = rows - row < block_rows ? rows - row : block_rows;
    std::memset(table + row * columns, 0, static_cast<size_t>(count * columns) * sizeof(T));
  }
}

} // namespace

DEFINE_SCATTER_ADD

} // namespace trainc
