// SPDX-License-Identifier: Apache-2.0
//
// Tiles of attention on the CPU: some queries by some keys, small enough that their scores stay in
// the second cache. What a thread computes is a function of the shape alone, and every sum goes
// through its tiles in order.
#pragma once

#include "runtime/cpu/one_thread.h"
#include "runtime/cpu/row_products.h"
#include "runtime/cpu/thread_memory.h"
#include "runtime/cpu/wide_vectors.h"
#include "runtime/kernels/attention_gradient.h"
#include "runtime/kernels/lanes.h"
#include "runtime/kernels/matrix_storage.h"

#include <algorithm>

namespace trainc {

constexpr int64_t tile_queries = 128;
constexpr int64_t tile_keys = attention_tile_keys;

// ---- tiles in memory

// Memory of the calling thread. A number of P takes as much of it as one of S, or more.
template <typename S> class tile_memory {
public:
  explicit tile_memory(int64_t count) : next_(thread_memory<S>(static_cast<size_t>(count))) {}
  template <typename P> P *take(int64_t count) {
    static_assert(sizeof(P) <= sizeof(S));
    S *taken = next_;
    next_ += count;
    return reinterpret_cast<P *>(taken);
  }

private:
  S *next_;
};

template <typename P> struct tile_matrix {
  const P *data;
  int64_t leading;
};

// Copies rows of `columns` elements, each converted. Of neighbours in memory that is a loop of its
// own.
template <typename From, typename To>
void copy_rows(const From *from, int64_t from_row, int64_t from_column, To *to, int64_t to_row,
               int64_t to_column, int64_t rows, int64_t columns) {
  vectorised<float>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      const From *in = from + i * from_row;
      To *out = to + i * to_row;
      if (from_column == 1 && to_column == 1)
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j)
          out[j] = static_cast<To>(in[j]);
      else
        for (int64_t j = 0; j < columns; ++j)
          out[j * to_column] = static_cast<To>(in[j * from_column]);
    }
  });
}

// Rows of a matrix for products: in place where they are as products read them, else in `copy`.
template <typename T, typename P>
tile_matrix<P> load_tile(const T *matrix, const matrix_layout &layout, int64_t row, int64_t rows,
                         int64_t columns, P *copy) {
  const T *from = matrix + row * layout.row_stride;
  if constexpr (std::is_same_v<T, P>)
    if (layout.column_stride == 1 || columns == 1)
      return {from, rows == 1 ? columns : layout.row_stride};
  copy_rows(from, layout.row_stride, layout.column_stride, copy, columns, 1, rows, columns);
  return {copy, columns};
}

template <typename T, typename S>
void store_tile(const S *from, int64_t leading, T *matrix, const matrix_layout &layout, int64_t row,
                int64_t rows, int64_t columns) {
  copy_rows(from, leading, 1, matrix + row * layout.row_stride, layout.row_stride,
            layout.column_stride, rows, columns);
}

// ---- heads

inline int64_t head_count(const attention_batch &batch) { return batch_count(batch.of); }

inline int64_t head_offset(const attention_batch &batch, const matrix_layout &matrix,
                           int64_t head) {
  return batch_offset(batch.of, matrix, head);
}

// Scores lie in rows of whole vectors, so that no exp is left for a loop over single elements.
constexpr int64_t whole_lanes(int64_t elements) { return (elements + lanes - 1) / lanes * lanes; }

// Of a query's keys from `first` on, how many it sees, of `count`.
inline int64_t seen_keys(const attention_sizes &sizes, int64_t query, int64_t first,
                         int64_t count) {
  return std::clamp<int64_t>(query + sizes.reach + 1 - first, 0, count);
}

// ---- scores

// The keys of a row that are not seen: what a loop over whole vectors reads of them.
template <typename S> TRAINC_INLINE void hide_rest(S *scores, int64_t seen) {
  for (int64_t j = seen; j < whole_lanes(seen); ++j)
    scores[j] = hidden_score<S>;
}

// Adds a row of a mask to scores. -infinity hides a key of any score.
template <typename S>
TRAINC_INLINE void add_mask(const S *mask, int64_t stride, int64_t count, S *scores) {
  constexpr S hidden = hidden_score<S>;
  if (stride == 1)
#pragma omp simd
    for (int64_t j = 0; j < count; ++j)
      scores[j] = mask[j] == hidden ? hidden : scores[j] + mask[j];
  else
    for (int64_t j = 0; j < count; ++j)
      scores[j] = mask[j * stride] == hidden ? hidden : scores[j] + mask[j * stride];
}

// The masks of a tile of one head.
template <typename S> struct tile_masks {
  int64_t count;
  const S *data[max_masks]; // the tile's first element
  int64_t row_stride[max_masks], column_stride[max_masks];

  TRAINC_INLINE void add(int64_t row, int64_t columns, S *scores) const {
    for (int64_t i = 0; i < count; ++i)
      add_mask(data[i] + row * row_stride[i], column_stride[i], columns, scores);
  }
};

template <typename T>
tile_masks<attention_sum<T>> masks_of(const attention_shape &shape,
                                      const attention_tensors<T> &tensors, int64_t head,
                                      int64_t query, int64_t key) {
  tile_masks<attention_sum<T>> masks = {shape.sizes.masks, {}, {}, {}};
  for (int64_t i = 0; i < shape.sizes.masks; ++i) {
    const matrix_layout &layout = shape.masks.of[i];
    masks.data[i] = tensors.masks[i] + head_offset(shape.batch, layout, head) +
                    query * layout.row_stride + key * layout.column_stride;
    masks.row_stride[i] = layout.row_stride;
    masks.column_stride[i] = layout.column_stride;
  }
  return masks;
}

// ---- dropout

// What a tile of one head multiplies weights by.
template <typename S> struct tile_dropout {
  int64_t key, stream, first, keys; // the number of the tile's first element, and of a row's
  int32_t dropped;                  // 0 where nothing is
  S kept;

  // Calls work(drop) for a row's first `count` elements, and what is left of a vector: drop(number,
  // j) is what becomes of element j.
  template <typename Work> TRAINC_INLINE void apply(int64_t row, int64_t count, Work work) const {
    if (dropped == 0)
      return work([](S number, int64_t) ALWAYS_INLINED { return number; });
    S factors[tile_keys];
    const int64_t begin = first + row * keys;
#pragma omp simd
    for (int64_t j = 0; j < whole_lanes(count); ++j)
      factors[j] = random_bits<dropout_bits>(key, stream, begin + j) < dropped ? S(0) : kept;
    work([&](S number, int64_t j) ALWAYS_INLINED { return number * factors[j]; });
  }
};

template <typename T>
tile_dropout<attention_sum<T>> dropout_of(const attention_shape &shape,
                                          const attention_tensors<T> &tensors, int64_t head,
                                          int64_t query, int64_t key) {
  const attention_dropout &of = shape.dropout;
  return {tensors.key == nullptr ? 0 : *tensors.key,
          of.stream,
          (head * shape.sizes.queries + query) * shape.sizes.keys + key,
          shape.sizes.keys,
          static_cast<int32_t>(of.dropped),
          static_cast<attention_sum<T>>(of.kept)};
}

// What products of T read: `P`, which is T or what sums are. Calls work(P()).
template <typename T, typename Work> void with_product_type(Work work) {
  if constexpr (std::is_same_v<T, bfloat16>)
    if (multiplies_bfloat16())
      return work(T());
  work(attention_sum<T>());
}

// Products of bf16 have no factor: the loops over scores take it.
template <typename P> struct attention_factors {
  double of_product, of_scores;
  explicit attention_factors(double scale)
      : of_product(std::is_same_v<P, bfloat16> ? 1 : scale),
        of_scores(std::is_same_v<P, bfloat16> ? scale : 1) {}
};

// Writes a number as a product of T reads it.
template <typename T, typename P, typename S> TRAINC_INLINE void store_read(S value, P &place) {
  if constexpr (is_narrow_v<T> && !std::is_same_v<T, P>)
    place = T::nearest(value);
  else
    place = value;
}

template <typename S> TRAINC_INLINE void multiply_scores(S *scores, int64_t count, S factor) {
  if (factor != 1)
#pragma omp simd
    for (int64_t j = 0; j < whole_lanes(count); ++j)
      scores[j] *= factor;
}

// Calls work(item) for each on the threads of the team, which hold none for long.
template <typename Work>
void for_each_item(const attention_shape &shape, int64_t items, Work work) {
  const double pairs = static_cast<double>(head_count(shape.batch) * shape.sizes.queries) *
                       static_cast<double>(shape.sizes.keys);
  const bool parallel = items > 1 && pairs > 2e3;
  const one_thread alone(!parallel);
#pragma omp parallel for schedule(dynamic) if (parallel)
  for (int64_t item = 0; item < items; ++item)
    work(item);
}

} // namespace trainc
