// SPDX-License-Identifier: Apache-2.0
//
// Attention on tiles (tiles.h): a block has a tile of queries of one head and goes
// through the keys, with a softmax that corrects what it has so far (Dao, "FlashAttention-2",
// 2023).
#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/forward.h"
#include "runtime/cuda/attention/tiles.h"

namespace trainc {
namespace {

template <typename Tiles> struct row_state {
  typename Tiles::sum largest[Tiles::thread_rows], sum[Tiles::thread_rows],
      factor[Tiles::thread_rows];
};

// Scores become weights, in the tile, not yet divided by their sum.
template <typename Tiles>
__device__ __forceinline__ void weigh(const attention_sizes &sizes, typename Tiles::sum scale,
                                      const head_masks<typename Tiles::sum> &masks,
                                      const head_dropout<typename Tiles::sum> &dropout,
                                      int64_t query, int64_t key, const thread_sums<Tiles> &scores,
                                      row_state<Tiles> &state, typename Tiles::tile &weights) {
  using S = typename Tiles::sum;
  const Tiles thread;
#pragma unroll
  for (int r = 0; r < Tiles::thread_rows; ++r) {
    const int64_t i = query + thread.row(r);
    S score[Tiles::thread_columns], largest = state.largest[r];
#pragma unroll
    for (int c = 0; c < Tiles::thread_columns; ++c) {
      const int64_t j = key + thread.score(c);
      score[c] = sees(sizes, i, j) ? masks.add(i, j, scores[r][c] * scale) : hidden_score<S>;
      largest = maximum(largest, score[c]);
    }
    largest = Tiles::combine_row(largest, maximum_value());
    const S base = largest == hidden_score<S> ? S(0) : largest; // exp(-infinity - 0) = 0
    S sum = 0;
#pragma unroll
    for (int c = 0; c < Tiles::thread_columns; ++c) {
      const S weight = exp(score[c] - base);
      sum += weight;
      const S kept = weight * dropout.factor(i, key + thread.score(c));
      weights.set(thread.row(r), thread.score(c), as_read<typename Tiles::element>(kept));
    }
    sum = Tiles::combine_row(sum, add_values());
    state.factor[r] = exp(state.largest[r] - base);
    state.sum[r] = fma(state.sum[r], state.factor[r], sum);
    state.largest[r] = largest;
  }
}

// A tile of queries for each block along x, of the last ones first, `parts` tiles of the result's
// columns for each along y.
template <typename Tiles, int parts>
__device__ __forceinline__ void
attend(const attention_shape &shape, int64_t heads, bool masked_to_zero,
       const attention_tensors<typename Tiles::element> &tensors, three_tiles<Tiles> &tiles) {
  using S = typename Tiles::sum;
  const attention_sizes &sizes = shape.sizes;
  const Tiles thread;
  const int64_t head = blockIdx.x % heads,
                query = ((gridDim.x - 1 - blockIdx.x) / heads) * Tiles::edge,
                column = static_cast<int64_t>(blockIdx.y) * parts * Tiles::edge;
  const auto q = matrix_of(tensors.q, shape.batch, shape.q, head, sizes.queries, sizes.size),
             k = matrix_of(tensors.k, shape.batch, shape.k, head, sizes.keys, sizes.size),
             v = matrix_of(tensors.v, shape.batch, shape.v, head, sizes.keys, sizes.value_size);
  const head_masks<S> masks = masks_of(shape, tensors, head);
  const head_dropout<S> dropout = {shape, tensors.key, head};
  row_state<Tiles> state;
  thread_sums<Tiles> result[parts] = {};
#pragma unroll
  for (int r = 0; r < Tiles::thread_rows; ++r) {
    state.largest[r] = hidden_score<S>;
    state.sum[r] = 0;
  }
  const int64_t end = end_of_keys(sizes, query + Tiles::edge - 1);
  for (int64_t key = 0; key < end; key += Tiles::edge) {
    thread_sums<Tiles> scores = {};
    add_scores<Tiles>(q, query, k, key, /*keeps_left=*/key > 0, tiles, scores);
    weigh<Tiles>(sizes, static_cast<S>(shape.scale), masks, dropout, query, key, scores, state,
                 tiles.weights);
    for_each_part<Tiles, parts>(column, sizes.value_size, [&](int part, int64_t first) {
      for_each_sum<Tiles>([&](int r, int c) { result[part][r][c] *= state.factor[r]; });
      Tiles::load(v, key, first, tiles.right);
      __syncthreads();
      Tiles::template multiply<false>(tiles.weights, tiles.right, end - key,
                                      sizes.value_size - first, tiles, result[part]);
      __syncthreads();
    });
  }
  const auto to =
      matrix_of(tensors.result, shape.batch, shape.result, head, sizes.queries, sizes.value_size);
#pragma unroll
  for (int r = 0; r < Tiles::thread_rows; ++r) {
    const row_end<S> last(state.largest[r], state.sum[r], masked_to_zero);
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int c = 0; c < Tiles::thread_columns; ++c)
        result[part][r][c] /= last.divisor;
    const int64_t row = query + thread.row(r);
    if (thread.is_first_of_row() && blockIdx.y == 0 && row < sizes.queries)
      tensors.log_sum[head * sizes.queries + row] = last.log_sum;
  }
  store_parts<Tiles, parts>(result, S(1), query, column, to);
}

// Kernels that are not templates have shared memory of their own, as the stand-in wants it.
#define TILE_FORWARD(name, T, parts)                                                               \
  __global__ void __launch_bounds__(tiles_of<T>::threads, 1)                                       \
      name(attention_shape shape, int64_t heads, bool masked_to_zero, const T *q, const T *k,      \
           const T *v, const attention_sum<T> *first_mask, const attention_sum<T> *second_mask,    \
           const int64_t *key, T *result, attention_sum<T> *log_sum) {                             \
    __shared__ three_tiles<tiles_of<T>> tiles;                                                     \
    attend<tiles_of<T>, parts>(shape, heads, masked_to_zero,                                       \
                               {q, k, v, {first_mask, second_mask}, result, log_sum, key}, tiles); \
  }
TILE_FORWARD(attention_f32, float, 1)
TILE_FORWARD(attention_f32_wide, float, 2)
TILE_FORWARD(attention_f64, double, 1)
TILE_FORWARD(attention_bf16_wide, bfloat16, 2)
TILE_FORWARD(attention_f16_wide, float16, 2)
#undef TILE_FORWARD

template <typename T, typename Kernel>
void start(Kernel kernel, int parts, const attention_shape &shape, bool masked_to_zero,
           const attention_tensors<T> &tensors) {
  const attention_extents<T> all{shape, tensors};
  const attention_sizes &sizes = shape.sizes;
  launch("attention", kernel,
         {blocks_of(all.heads() * parts_of(sizes.queries, tiles_of<T>::edge)), tiles_of<T>::threads,
          static_cast<unsigned>(parts_of(sizes.value_size, parts * tiles_of<T>::edge))},
         shape, all.heads(), masked_to_zero, all.q(), all.k(), all.v(), all.mask(0), all.mask(1),
         all.key(), all.result(), all.log_sum());
}

} // namespace

template <>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<float> &tensors) {
  if (shape.sizes.value_size > tiles_of<float>::edge)
    start(attention_f32_wide, 2, shape, masked_to_zero, tensors);
  else
    start(attention_f32, 1, shape, masked_to_zero, tensors);
}

template <>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<double> &tensors) {
  start(attention_f64, 1, shape, masked_to_zero, tensors);
}

// Heads of more than 128 numbers; smaller ones are attended to in warps.
template <>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<bfloat16> &tensors) {
  start(attention_bf16_wide, 2, shape, masked_to_zero, tensors);
}

template <>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<float16> &tensors) {
  start(attention_f16_wide, 2, shape, masked_to_zero, tensors);
}

} // namespace trainc
