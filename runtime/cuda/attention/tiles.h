// SPDX-License-Identifier: Apache-2.0
//
// What attention does with tiles of any kind: `Tiles`, which multiplies them, is squares<T>
// (square_tiles.h) or warp_tiles. A block holds three tiles of edge x edge numbers; of a product of
// two of them each of its threads has rows x columns sums.
#pragma once

#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/attention/square_tiles.h"
#include "runtime/cuda/attention/warp_tiles.h"
#include "runtime/cuda/kernels/reduce.h"

namespace trainc {

// What computes attention of numbers of T, and its gradient, which has more sums.
template <typename T>
using tiles_of = std::conditional_t<is_narrow_v<T>, warp_tiles<T, 1>, squares<T>>;
template <typename T>
using gradient_tiles_of = std::conditional_t<is_narrow_v<T>, warp_tiles<T, 2>, squares<T>>;

// A base that is empty, as that of squares, takes no memory.
template <typename Tiles> struct three_tiles : Tiles::exchange {
  typename Tiles::tile left, right, weights;
};

template <typename Tiles>
using thread_sums = typename Tiles::sum[Tiles::thread_rows][Tiles::thread_columns];

template <typename Tiles, typename Work> __device__ __forceinline__ void for_each_sum(Work work) {
#pragma unroll
  for (int r = 0; r < Tiles::thread_rows; ++r)
#pragma unroll
    for (int c = 0; c < Tiles::thread_columns; ++c)
      work(r, c);
}

// scores += rows of `left` times rows of `right`, part by part of their columns. With `keeps_left`
// the left tile has them already, if that is one part.
template <typename Tiles>
__device__ inline void
add_scores(const head_matrix<const typename Tiles::element> &left, int64_t left_row,
           const head_matrix<const typename Tiles::element> &right, int64_t right_row,
           bool keeps_left, three_tiles<Tiles> &tiles, thread_sums<Tiles> &scores) {
  for (int64_t column = 0; column < left.columns; column += Tiles::edge) {
    if (!keeps_left || left.columns > Tiles::edge)
      Tiles::load(left, left_row, column, tiles.left);
    Tiles::load(right, right_row, column, tiles.right);
    __syncthreads();
    Tiles::template multiply<true>(tiles.left, tiles.right, left.columns - column,
                                   right.rows - right_row, tiles, scores);
    __syncthreads();
  }
}

// Of this thread's sums of each part of a result.
template <typename Tiles, int parts>
__device__ inline void store_parts(const thread_sums<Tiles> (&sums)[parts],
                                   typename Tiles::sum factor, int64_t row, int64_t column,
                                   const head_matrix<typename Tiles::element> &matrix) {
  const Tiles thread;
#pragma unroll
  for (int part = 0; part < parts; ++part)
    for_each_sum<Tiles>([&](int r, int c) {
      const int64_t i = row + thread.row(r), j = column + part * Tiles::edge + thread.column(c);
      if ((i < matrix.rows) & (j < matrix.columns))
        matrix.at(i, j) = static_cast<typename Tiles::element>(sums[part][r][c] * factor);
    });
}

// The parts of a block's columns that a matrix has: calls work(part, first column).
template <typename Tiles, int parts, typename Work>
__device__ inline void for_each_part(int64_t column, int64_t columns, Work work) {
#pragma unroll
  for (int part = 0; part < parts; ++part)
    if (column + part * Tiles::edge < columns)
      work(part, column + part * Tiles::edge);
}

} // namespace trainc
