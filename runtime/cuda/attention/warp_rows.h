// SPDX-License-Identifier: Apache-2.0
//
// For attention of bf16 or f16 with heads of at most 128 numbers, on tensor cores. A block has some
// rows of one matrix, "near", and goes through tiles of rows of another one, "far". Each warp has
// strips of 16 near rows in registers, with all their columns. Products of near and far rows stay
// in registers too: as they leave one product they enter the next one (Dao, "FlashAttention-2",
// 2023). While a tile is worked on, the next one arrives in shared memory.
#pragma once

#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/async_copy.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/tensor_core.h"
#include "runtime/cuda/kernels/vector.h"

namespace trainc {

// A matrix of one head, whose elements an int counts. `is_wide` where groups of 8 numbers are whole
// and lie at multiples of 16 bytes.
template <typename T> struct head_rows {
  T *data;
  int row_stride, column_stride;
  int rows, columns;
  bool is_wide;

  __device__ explicit head_rows(const head_matrix<T> &of)
      : data(of.data), row_stride(static_cast<int>(of.row_stride)),
        column_stride(static_cast<int>(of.column_stride)), rows(static_cast<int>(of.rows)),
        columns(static_cast<int>(of.columns)),
        is_wide(column_stride == 1 && row_stride % 8 == 0 && columns % 8 == 0 &&
                reinterpret_cast<uintptr_t>(data) % 16 == 0) {}

  __device__ T *at(int row, int column) const {
    return data + (row * row_stride + column * column_stride);
  }
  __device__ T *group_at(int row, int group) const { return data + (row * row_stride + 8 * group); }
};

// What kernels are made for. Plain: matrices are wide, the scale is positive, and a query sees keys
// by the reach alone. Masked: the same with masks whose pairs of keys lie at multiples of 8 bytes.
enum class attention_kind : uint8_t { plain, masked, any };

// `size` numbers are at least those of a row; what is beyond is 0. A tile of far rows has so many
// elements.
template <typename T, int size_, int strips_, attention_kind kind_, int tile_elements_ = 4096>
struct warp_rows {
  using element = T;
  static constexpr int size = size_, strips = strips_;
  static constexpr attention_kind kind = kind_;
  static constexpr bool is_plain = kind == attention_kind::plain,
                        is_any = kind == attention_kind::any;
  static constexpr int warps = 4, threads = 32 * warps;
  static constexpr int rows = 16 * strips * warps; // near ones of a block
  static constexpr int tile_elements = tile_elements_, far_rows = tile_elements / size;
  static constexpr int steps = size / 16; // of a product along a row

  using fragments = left_fragment[strips][steps]; // a warp's near rows
  using weights = left_fragment[strips];          // of 16 far rows
  using pair_sums = float[strips][2][4];          // of near rows with 16 far rows
  using row_sums = float[strips][size / 8][4];    // of near rows

  // Two stages of two far matrices; near rows pass through before or after.
  struct memory {
    alignas(128) T tiles[4 * tile_elements];
    warp_exchange exchange[warps];

    __device__ T *far(int stage, int matrix) {
      return tiles + (2 * stage + matrix) * tile_elements;
    }
    __device__ T *near(int matrix) { return tiles + 2 * matrix * tile_elements; }
    __device__ warp_exchange &own() { return exchange[threadIdx.x / 32]; }
  };
  static_assert(rows * size <= 4 * tile_elements);

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  // The first row of this warp; of this thread in a strip, where it also has the 8th after it.
  __device__ static int warp_row() { return static_cast<int>(threadIdx.x) / 32 * 16 * strips; }
  __device__ static int row(int strip, int half) {
    return warp_row() + 16 * strip + 8 * half + lane() / 4;
  }
  // One after the last key that the warp's queries see, if the block's are from `first` on.
  __device__ static int end_of_warp_keys(const attention_sizes &sizes, int first) {
    const int query = first + warp_row();
    return query < sizes.queries ? static_cast<int>(end_of_keys(sizes, query + 16 * strips - 1))
                                 : 0;
  }
  // Of 16 far rows the first of a pair: far rows are columns of a product.
  __device__ static int column(int part) { return 8 * part + lane() % 4 * 2; }

  // Of sums of near rows with 16 far ones: the pairs of neighbours that a thread has.
  template <typename Work> __device__ static void for_each_pair(Work work) {
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          work(strip, part, half);
  }

  // Rows of groups of 8 numbers. Where a group is depends on its row, so that the same group of
  // eight rows lies in different banks.
  __device__ static int place(int row, int group) { return row * size + (group ^ row % 8) * 8; }

  // Starts to copy `count` rows from `first` on.
  template <int count>
  __device__ static void load(const head_rows<const T> &from, int first, T *tile) {
    constexpr int groups = size / 8;
    const int own = static_cast<int>(threadIdx.x), group = own % groups;
    if (!is_any || from.is_wide) {
#pragma unroll
      for (int i = 0; i < count * groups / threads; ++i) {
        const int row = own / groups + i * (threads / groups);
        copy_async<16>(tile + place(row, group), from.group_at(first + row, group),
                       (first + row < from.rows) & (8 * group < from.columns));
      }
    } else {
      load_elements<count>(from, first, tile);
    }
  }
  template <int count>
  __device__ static void load_elements(const head_rows<const T> &from, int first, T *tile) {
    constexpr int groups = size / 8;
    const int own = static_cast<int>(threadIdx.x), group = own % groups;
#pragma unroll 1
    for (int row = own / groups; row < count; row += threads / groups) {
      T *to = tile + place(row, group);
#pragma unroll 1
      for (int k = 0; k < 8; ++k) {
        const bool is_inside = (first + row < from.rows) & (8 * group + k < from.columns);
        to[k] = is_inside ? *from.at(first + row, 8 * group + k) : T::of_bits(0);
      }
    }
  }

  // A part of the warp's near rows: of a strip, 16 columns.
  __device__ static left_fragment near_part(const T *tile, memory &all, int strip, int step) {
    const int own = place(warp_row() + lane() % 16, lane() / 16);
    left_fragment part;
    load_matrices<false>(tile + 16 * strip * size + at_step(own, step), all.own(), part.of);
    return part;
  }
  __device__ static void take(const T *tile, memory &all, fragments &near) {
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int step = 0; step < steps; ++step)
        near[strip][step] = near_part(tile, all, strip, step);
  }

  // sums += near far', of 16 rows of a tile from `row` on; near(strip, step) is a part.
  template <typename Near>
  __device__ static void multiply_parts(Near near, const T *tile, int row, memory &all,
                                        pair_sums &sums) {
    const int own = place(lane() / 16 * 8 + lane() % 8, lane() / 8 % 2);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      uint32_t far[4];
      load_matrices<false>(tile + row * size + at_step(own, step), all.own(), far);
#pragma unroll
      for (int strip = 0; strip < strips; ++strip) {
        const left_fragment left = near(strip, step);
#pragma unroll
        for (int part = 0; part < 2; ++part)
          multiply_add<T>(left, {{far[2 * part], far[2 * part + 1]}}, all.own(), sums[strip][part]);
      }
    }
  }
  __device__ static void multiply(const fragments &near, const T *tile, int row, memory &all,
                                  pair_sums &sums) {
    multiply_parts([&](int strip, int step) { return near[strip][step]; }, tile, row, all, sums);
  }

  // sums += weights far, of these rows
  __device__ static void add(const weights &of, const T *tile, int row, memory &all,
                             row_sums &sums) {
    const int own = place(lane() % 16, lane() / 16);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      uint32_t far[4];
      load_matrices<true>(tile + row * size + at_step(own, step), all.own(), far);
#pragma unroll
      for (int strip = 0; strip < strips; ++strip)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          multiply_add<T>(of[strip], {{far[2 * part], far[2 * part + 1]}}, all.own(),
                          sums[strip][2 * step + part]);
    }
  }

  // The sums of a product of near and far rows as the left side of the next product.
  __device__ static void as_weights(const pair_sums &sums, weights &to) {
    for_each_pair([&](int strip, int part, int half) {
      const float *pair = sums[strip][part] + 2 * half;
      to[strip].of[2 * part + half] = nearest_pair<T>(pair[0], pair[1]);
    });
  }

  // The block's near rows from `first` on: factor(strip, half) times their sums. Each warp has a
  // part of the memory, which no other warp reads any more.
  template <typename Factor>
  __device__ static void store(const row_sums &sums, Factor factor, const head_rows<T> &to,
                               int first, T *tile) {
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int group = 0; group < size / 8; ++group)
          set_vector(tile + place(row(strip, half), group) + lane() % 4 * 2,
                     nearest_pair<T>(sums[strip][group][2 * half] * factor(strip, half),
                                     sums[strip][group][2 * half + 1] * factor(strip, half)));
    __syncwarp();
    constexpr int groups = size / 8;
#pragma unroll 1
    for (int row = warp_row() + lane() / groups; row < warp_row() + 16 * strips;
         row += 32 / groups) {
      const int column = lane() % groups * 8;
      const T *from = tile + place(row, lane() % groups);
      if (first + row >= to.rows || column >= to.columns)
        continue;
      if (!is_any || to.is_wide)
        set_vector(to.group_at(first + row, lane() % groups), vector_at<uint4>(from));
      else
        for (int k = 0; k < 8 && column + k < to.columns; ++k)
          *to.at(first + row, column + k) = from[k];
    }
    __syncwarp();
  }

  // Tiles of far rows from `begin` to `end`; more of them follow up to `last`. load(row, stage)
  // starts to copy one, visit(row, stage) works on it.
  template <typename Load, typename Visit>
  __device__ static void for_each_tile(int begin, int end, int last, int &stage, Load load,
                                       Visit visit) {
#pragma unroll 1
    for (int row = begin; row < end; row += far_rows) {
      wait_for_copies<0>();
      __syncthreads(); // all see this tile, and none reads the one before it
      if (row + far_rows < last)
        load(row + far_rows, 1 - stage);
      end_group_of_copies();
      visit(row, stage);
      stage = 1 - stage;
    }
  }

private:
  // The place of a row's group so many steps, of two groups each, after the first or second one.
  // Only the steps of 64 columns have a number each that the compiler keeps in a register.
  __device__ static int at_step(int place, int step) {
    return (place ^ step % 4 * 16) + step / 4 * 64;
  }
};

// Rows as the kernels count them.
__device__ inline int clamped_row(int64_t row) {
  constexpr int64_t most = 1 << 30;
  return static_cast<int>(clamped_to(row, -most, most));
}

// Scores of the products of near rows with 16 far ones: scaled, and as masks leave them.
template <typename Rows, bool near_are_queries>
__device__ __forceinline__ void add_masks(const attention_shape &shape,
                                          const head_masks<float> &masks, int near, int far,
                                          typename Rows::pair_sums &sums) {
  const attention_sizes &sizes = shape.sizes;
  const int last_query = static_cast<int>(sizes.queries) - 1,
            last_key = static_cast<int>(sizes.keys) - 1;
  const float scale = static_cast<float>(shape.scale);
  Rows::for_each_pair([&](int strip, int part, int half) {
    for (int side = 0; side < 2; ++side)
      sums[strip][part][2 * half + side] *= scale;
  });
#pragma unroll 1
  for (int i = 0; i < static_cast<int>(sizes.masks); ++i) {
    static_assert(max_masks == 2);
    const float *mask = i == 0 ? masks.data[0] : masks.data[1];
    const matrix_layout &layout = shape.masks.of[i];
    const auto row_stride = static_cast<int>(layout.row_stride),
               column_stride = static_cast<int>(layout.column_stride);
    Rows::for_each_pair([&](int strip, int part, int half) {
      float *pair = sums[strip][part] + 2 * half;
      const int row = near + Rows::row(strip, half), column = far + Rows::column(part);
      float added[2];
      if constexpr (near_are_queries && !Rows::is_any) {
        const auto both = vector_at<float2>(
            mask + (smaller_of(row, last_query) * row_stride + smaller_of(column, last_key - 1)));
        added[0] = both.x;
        added[1] = both.y;
      } else {
        for (int side = 0; side < 2; ++side) {
          const int query = smaller_of(near_are_queries ? row : column + side, last_query),
                    key = smaller_of(near_are_queries ? column + side : row, last_key);
          added[side] = mask[query * row_stride + key * column_stride];
        }
      }
      for (int side = 0; side < 2; ++side) // -infinity hides a key of any score
        pair[side] = added[side] == hidden_score<float> ? added[side] : pair[side] + added[side];
    });
  }
}

// The keys that queries of a block see: some of them those up to `end`, all of them those up to
// `full`, which is the end of a tile. Masks are most of the work of a tile, full or not.
template <typename Rows> struct seen_keys {
  int end, full;

  __device__ seen_keys(const attention_sizes &sizes, int first) {
    const int keys = static_cast<int>(sizes.keys), queries = static_cast<int>(sizes.queries),
              reach = clamped_row(sizes.reach);
    end = clamped_to(smaller_of(first + Rows::rows, queries) + reach, 0, keys);
    full = clamped_to(first + reach + 1, 0, Rows::is_plain ? keys : 0) / Rows::far_rows *
           Rows::far_rows;
  }

  // The first tile is on its way to the first stage.
  template <typename Queries, typename Load>
  __device__ __forceinline__ void visit(Queries &queries, typename Rows::memory &memory,
                                        Load load) const {
    int stage = 0;
    Rows::for_each_tile(0, full, end, stage, load, [&](int key, int at) {
      queries.template visit<false>(key, memory.far(at, 0), memory.far(at, 1), memory);
    });
    Rows::for_each_tile(full, end, end, stage, load, [&](int key, int at) {
      queries.template visit<true>(key, memory.far(at, 0), memory.far(at, 1), memory);
    });
    __syncthreads();
  }
};

} // namespace trainc
