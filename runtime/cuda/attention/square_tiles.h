// SPDX-License-Identifier: Apache-2.0
//
// Attention on square tiles with IEEE multiply-adds: any type, any size of a head. A block holds
// three tiles; each of its threads has 4 x 4 elements of a product of two of them.
#pragma once

#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/vector.h"

namespace trainc {

// Threads of a block along each edge of a tile.
template <typename T> constexpr int tile_side = sizeof(attention_sum<T>) == 8 ? 8 : 16;
template <typename T> constexpr int tile_edge = 4 * tile_side<T>;
template <typename T> constexpr int tile_threads = tile_side<T> *tile_side<T>;

// Rows of groups of four elements. Where a group is depends on its row, so that threads that read
// the same group of neighbouring rows meet different banks.
template <typename T> struct square_tile {
  using S = attention_sum<T>;
  alignas(16) S data[tile_edge<T> * tile_edge<T>];

  __device__ static int place(int row, int group) {
    return row * tile_edge<T> + (group ^ row % tile_side<T>)*4;
  }
  __device__ four<S> group(int row, int group) const { return load_four(data + place(row, group)); }
  __device__ void set(int row, int column, S value) {
    data[place(row, column / 4) + column % 4] = value;
  }
};

template <typename T> struct three_tiles { square_tile<T> left, right, weights; };

template <typename T> using thread_sums = attention_sum<T>[4][4];

// Row 4 y + r of a product, and column x + side c of one whose right side has rows, or 4 x + c.
template <typename T> struct tile_thread {
  int x = static_cast<int>(threadIdx.x) % tile_side<T>;
  int y = static_cast<int>(threadIdx.x) / tile_side<T>;

  __device__ int row(int r) const { return 4 * y + r; }
  __device__ int score(int c) const { return x + tile_side<T> * c; }
};

// Elements from (row, column) on; 0 outside of the matrix.
template <typename T>
__device__ inline void load_tile(const head_matrix<const T> &matrix, int64_t row, int64_t column,
                                 square_tile<T> &tile) {
  constexpr int groups = tile_side<T>;
  const bool is_wide = matrix.column_stride == 1 && matrix.row_stride % 4 == 0 &&
                       reinterpret_cast<uintptr_t>(matrix.data) % (4 * sizeof(T)) == 0;
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    const int place = static_cast<int>(threadIdx.x) + i * tile_threads<T>;
    const int r = place / groups, group = place % groups;
    const int64_t at = column + 4 * group;
    four<attention_sum<T>> values = {};
    if (row + r < matrix.rows) {
      if (is_wide && at + 4 <= matrix.columns) {
        const four<T> loaded = load_four(&matrix.at(row + r, at));
        for (int k = 0; k < 4; ++k)
          values[k] = loaded[k];
      } else {
        for (int k = 0; k < 4; ++k)
          if (at + k < matrix.columns)
            values[k] = matrix.at(row + r, at + k);
      }
    }
    store_four(tile.data + square_tile<T>::place(r, group), values);
  }
}

// What a loop over groups of four goes up to.
template <typename T> __device__ inline int groups_in(int64_t elements) {
  return static_cast<int>(elements < tile_edge<T> ? (elements + 3) / 4 : tile_edge<T> / 4);
}

// sums += left right, or left right' where that side is transposed, of `groups` groups of columns
// of the left side
template <typename T, bool is_transposed>
__device__ inline void multiply(const square_tile<T> &left, const square_tile<T> &right, int groups,
                                thread_sums<T> &sums) {
  const tile_thread<T> thread;
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    four<attention_sum<T>> a[4], b[4];
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
          sums[r][c] = fma(a[r][k], is_transposed ? b[c][k] : b[k][c], sums[r][c]);
  }
}

// sums += left' right, of `groups` groups of rows
template <typename T>
__device__ inline void multiply_transposed(const square_tile<T> &left, const square_tile<T> &right,
                                           int groups, thread_sums<T> &sums) {
  const tile_thread<T> thread;
#pragma unroll 2
  for (int row = 0; row < 4 * groups; ++row) {
    const four<attention_sum<T>> a = left.group(row, thread.y), b = right.group(row, thread.x);
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        sums[r][c] = fma(a[r], b[c], sums[r][c]);
  }
}

// scores += rows of `left` times rows of `right`, part by part of their columns. With `keeps_left`
// the left tile has them already, if that is one part.
template <typename T>
__device__ inline void add_scores(const head_matrix<const T> &left, int64_t left_row,
                                  const head_matrix<const T> &right, int64_t right_row,
                                  bool keeps_left, three_tiles<T> &tiles, thread_sums<T> &scores) {
  for (int64_t column = 0; column < left.columns; column += tile_edge<T>) {
    if (!keeps_left || left.columns > tile_edge<T>)
      load_tile(left, left_row, column, tiles.left);
    load_tile(right, right_row, column, tiles.right);
    __syncthreads();
    multiply<T, true>(tiles.left, tiles.right, groups_in<T>(left.columns - column), scores);
    __syncthreads();
  }
}

// Of this thread's 4 x 4 elements of each part of a result.
template <typename T, int parts>
__device__ inline void store_parts(const attention_sum<T> (&sums)[parts][4][4],
                                   attention_sum<T> factor, int64_t row, int64_t column,
                                   const head_matrix<T> &matrix) {
  const tile_thread<T> thread;
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int64_t i = row + thread.row(r), j = column + part * tile_edge<T> + 4 * thread.x + c;
        if ((i < matrix.rows) & (j < matrix.columns))
          matrix.at(i, j) = static_cast<T>(sums[part][r][c] * factor);
      }
}

// The parts of a block's columns that a matrix has: calls work(part, first column).
template <typename T, int parts, typename Work>
__device__ inline void for_each_part(int64_t column, int64_t columns, Work work) {
#pragma unroll
  for (int part = 0; part < parts; ++part)
    if (column + part * tile_edge<T> < columns)
      work(part, column + part * tile_edge<T>);
}

} // namespace trainc
