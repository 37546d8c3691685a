// SPDX-License-Identifier: Apache-2.0
//
// Square tiles whose products are IEEE multiply-adds: of f32 and f64.
#pragma once

#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/vector.h"

namespace trainc {

// An object is this thread's place in a tile: its rows and columns of a product.
template <typename T> struct squares {
  using element = T;
  using sum = attention_sum<T>;
  // Threads of a block along each edge of a tile; each has 4 x 4 elements.
  static constexpr int side = sizeof(sum) == 8 ? 8 : 16;
  static constexpr int edge = 4 * side, threads = side * side;
  static constexpr int thread_rows = 4, thread_columns = 4;
  struct exchange {};

  // Rows of groups of four elements. Where a group is depends on its row, so that threads that read
  // the same group of neighbouring rows meet different banks.
  struct tile {
    alignas(16) sum data[edge * edge];

    __device__ static int place(int row, int group) {
      return row * edge + (group ^ row % side) * 4;
    }
    __device__ pack<sum, 4> group(int row, int group) const {
      return load_pack<4>(data + place(row, group));
    }
    __device__ void set(int row, int column, sum value) {
      data[place(row, column / 4) + column % 4] = value;
    }
  };
  using sums = sum[thread_rows][thread_columns];

  int x = static_cast<int>(threadIdx.x) % side, y = static_cast<int>(threadIdx.x) / side;

  __device__ int row(int r) const { return 4 * y + r; }
  // Of a product whose right side has columns, or rows: scores.
  __device__ int column(int c) const { return 4 * x + c; }
  __device__ int score(int c) const { return x + side * c; }
  __device__ bool is_first_of_row() const { return x == 0; }
  // Over the threads of a row.
  template <typename Combine> __device__ static sum combine_row(sum value, Combine combine) {
    return combine_group<side>(value, combine);
  }

  // Elements from (row, column) on; 0 outside of the matrix.
  __device__ static void load(const head_matrix<const T> &matrix, int64_t row, int64_t column,
                              tile &to) {
    const bool is_wide = matrix.column_stride == 1 && matrix.row_stride % 4 == 0 &&
                         reinterpret_cast<uintptr_t>(matrix.data) % (4 * sizeof(T)) == 0;
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int place = static_cast<int>(threadIdx.x) + i * threads;
      const int r = place / side, group = place % side;
      const int64_t at = column + 4 * group;
      pack<sum, 4> values = {};
      if (row + r < matrix.rows) {
        if (is_wide && at + 4 <= matrix.columns) {
          values = load_pack<4>(&matrix.at(row + r, at));
        } else {
          for (int k = 0; k < 4; ++k)
            if (at + k < matrix.columns)
              values[k] = matrix.at(row + r, at + k);
        }
      }
      store_pack<4>(to.data + tile::place(r, group), values);
    }
  }

  // What a loop over groups of four goes up to.
  __device__ static int groups_in(int64_t elements) {
    return static_cast<int>(elements < edge ? (elements + 3) / 4 : edge / 4);
  }

  // added += left right, or left right' where that side is transposed, over so many columns of the
  // left side
  template <bool is_transposed>
  __device__ static void multiply(const tile &left, const tile &right, int64_t length, int64_t,
                                  exchange &, sums &added) {
    const squares thread;
    const int groups = groups_in(length);
#pragma unroll 1
    for (int group = 0; group < groups; ++group) {
      pack<sum, 4> a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = left.group(thread.row(i), group);
        b[i] = is_transposed ? right.group(thread.score(i), group)
                             : right.group(4 * group + i, thread.x);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
          for (int c = 0; c < 4; ++c)
            added[r][c] = fma(a[r][k], is_transposed ? b[c][k] : b[k][c], added[r][c]);
    }
  }

  // added += left' right, over so many rows
  __device__ static void multiply_rows(const tile &left, const tile &right, int64_t length, int64_t,
                                       exchange &, sums &added) {
    const squares thread;
    const int groups = groups_in(length);
#pragma unroll 2
    for (int row = 0; row < 4 * groups; ++row) {
      const pack<sum, 4> a = left.group(row, thread.y), b = right.group(row, thread.x);
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          added[r][c] = fma(a[r], b[c], added[r][c]);
    }
  }
};

} // namespace trainc
