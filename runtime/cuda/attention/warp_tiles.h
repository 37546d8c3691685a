// SPDX-License-Identifier: Apache-2.0
//
// Tiles of bf16 or f16 numbers whose products are those of tensor cores: a warp has 16 rows of a
// product, and all columns or, with `split` warps side by side, a part of them. For heads that are
// too large for warp_rows.h, and for gradients of masks.
#pragma once

#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/tensor_core.h"
#include "runtime/cuda/kernels/vector.h"

namespace trainc {

// An object is this thread's place in a tile: its rows and columns of a product.
template <typename T, int split> struct warp_tiles {
  using element = T;
  using sum = float;
  static constexpr int edge = 64, warps = edge / 16 * split, threads = 32 * warps;
  static constexpr int thread_rows = 2, thread_columns = edge / split / 4;
  struct exchange {
    warp_exchange of[warps];
  };
  using sums = sum[thread_rows][thread_columns];

  // A row begins four banks after the one before it, so that the lanes of a fragment meet different
  // banks, whether they read along rows or columns.
  struct tile {
    static constexpr int stride = edge + 8;
    alignas(16) T data[edge * stride];

    __device__ const T &at(int row, int column) const { return data[row * stride + column]; }
    __device__ void set(int row, int column, float value) {
      data[row * stride + column] = static_cast<T>(value);
    }
    // Two neighbours of a row, the first of them at an even column; or of a column.
    __device__ uint32_t along_row(int row, int column) const {
      return vector_at<uint32_t>(&at(row, column));
    }
    __device__ uint32_t along_column(int row, int column) const {
      return pair_of(at(row, column), at(row + 1, column));
    }
  };

  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int g = lane / 4, t = lane % 4; // as in tensor_core.h
  int first_column = warp / (edge / 16) * (edge / split);

  __device__ int row(int r) const { return warp % (edge / 16) * 16 + g + 8 * r; }
  __device__ int column(int c) const { return first_column + c / 2 * 8 + 2 * t + c % 2; }
  __device__ int score(int c) const { return column(c); }
  __device__ bool is_first_of_row() const { return t == 0; }
  // Over the threads of a row, which are of one warp.
  template <typename Combine> __device__ static sum combine_row(sum value, Combine combine) {
    static_assert(split == 1);
    return combine_group<4>(value, combine);
  }

  // Elements from (row, column) on; 0 outside of the matrix.
  __device__ static void load(const head_matrix<const T> &matrix, int64_t row, int64_t column,
                              tile &to) {
    constexpr int group = 8, groups = edge / group; // of 16 bytes
    const bool is_wide = matrix.column_stride == 1 && matrix.row_stride % group == 0 &&
                         reinterpret_cast<uintptr_t>(matrix.data) % 16 == 0;
#pragma unroll 1
    for (int i = 0; i < edge * groups / threads; ++i) {
      const int place = static_cast<int>(threadIdx.x) + i * threads;
      const int r = place / groups, c = place % groups * group;
      T *values = to.data + r * tile::stride + c;
      const int64_t at = column + c;
      if (is_wide && row + r < matrix.rows && at + group <= matrix.columns) {
        set_vector(values, vector_at<int4>(&matrix.at(row + r, at)));
      } else {
        for (int k = 0; k < group; ++k) {
          const bool is_inside = row + r < matrix.rows && at + k < matrix.columns;
          values[k] = is_inside ? matrix.at(row + r, at + k) : T::of_bits(0);
        }
      }
    }
  }

  // In steps of a fragment's length, which are whole: what is beyond is 0.
  __device__ static int end_of(int64_t length) {
    return static_cast<int>(length < edge ? length : edge);
  }

  // added += left right, or left right' where that side is transposed, over so many columns of the
  // left side; of the result's columns those up to `width`
  template <bool is_transposed>
  __device__ static void multiply(const tile &left, const tile &right, int64_t length,
                                  int64_t width, exchange &lanes, sums &added) {
    add_product(
        length, width, lanes, added, [&](int row, int k) { return left.along_row(row, k); },
        [&](int column, int k) {
          return is_transposed ? right.along_row(column, k) : right.along_column(k, column);
        });
  }

  // added += left' right, over so many rows
  __device__ static void multiply_rows(const tile &left, const tile &right, int64_t length,
                                       int64_t width, exchange &lanes, sums &added) {
    add_product(
        length, width, lanes, added, [&](int row, int k) { return left.along_column(k, row); },
        [&](int column, int k) { return right.along_column(k, column); });
  }

private:
  // `left` and `right` read two numbers of a row, or of a column, of the product: those of k, k
  // + 1.
  template <typename Left, typename Right>
  __device__ __forceinline__ static void add_product(int64_t length, int64_t width, exchange &lanes,
                                                     sums &added, Left left, Right right) {
    const warp_tiles of;
    const int end = end_of(length), columns = end_of(width);
#pragma unroll 1
    for (int k = 0; k < end; k += 16) {
      const int row = of.row(0), first = k + 2 * of.t;
      const left_fragment a = {
          {left(row, first), left(row + 8, first), left(row, first + 8), left(row + 8, first + 8)}};
      of.add_columns(a, columns, lanes, added,
                     [&](int column, int part) { return right(column, first + 8 * part); });
    }
  }

  // `pair` reads two numbers of the right side: of a column, from the fragment's first or second
  // half.
  template <typename Pair>
  __device__ __forceinline__ void add_columns(const left_fragment &a, int columns, exchange &lanes,
                                              sums &added, Pair pair) const {
#pragma unroll
    for (int n = 0; n < thread_columns / 2; ++n) {
      const int first = first_column + 8 * n;
      if (first < columns) {
        const right_fragment b = {{pair(first + g, 0), pair(first + g, 1)}};
        float four[4] = {added[0][2 * n], added[0][2 * n + 1], added[1][2 * n],
                         added[1][2 * n + 1]};
        multiply_add<T>(a, b, lanes.of[warp], four);
        added[0][2 * n] = four[0];
        added[0][2 * n + 1] = four[1];
        added[1][2 * n] = four[2];
        added[1][2 * n + 1] = four[3];
      }
    }
  }
};

} // namespace trainc
