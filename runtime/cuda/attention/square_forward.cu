// SPDX-License-Identifier: Apache-2.0
//
// Attention on square tiles (square_tiles.h): a block has a tile of queries of one head and goes
// through the keys, with a softmax that corrects what it has so far (Dao, "FlashAttention-2",
// 2023).
#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/forward.h"
#include "runtime/cuda/attention/square_tiles.h"

namespace trainc {
namespace {

template <typename T> struct row_state { attention_sum<T> largest[4], sum[4], factor[4]; };

// Scores become weights, in the tile, not yet divided by their sum.
template <typename T>
__device__ __forceinline__ void weigh(const attention_sizes &sizes, attention_sum<T> scale,
                                      const head_masks<attention_sum<T>> &masks, int64_t query,
                                      int64_t key, const thread_sums<T> &scores,
                                      row_state<T> &state, square_tile<T> &weights) {
  using S = attention_sum<T>;
  const tile_thread<T> thread;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int64_t i = query + thread.row(r);
    S score[4], largest = state.largest[r];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int64_t j = key + thread.score(c);
      score[c] = sees(sizes, i, j) ? masks.add(i, j, scores[r][c] * scale) : hidden_score<S>;
      largest = maximum(largest, score[c]);
    }
    largest = combine_group<tile_side<T>>(largest, maximum_value());
    const S base = largest == hidden_score<S> ? S(0) : largest; // exp(-infinity - 0) = 0
    S sum = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const S weight = exp(score[c] - base);
      sum += weight;
      weights.set(thread.row(r), thread.score(c), as_read<T>(weight));
    }
    sum = combine_group<tile_side<T>>(sum, add_values());
    state.factor[r] = exp(state.largest[r] - base);
    state.sum[r] = fma(state.sum[r], state.factor[r], sum);
    state.largest[r] = largest;
  }
}

// A tile of queries for each block along x, of the last ones first, `parts` tiles of the result's
// columns for each along y.
template <typename T, int parts>
__device__ __forceinline__ void attend(const attention_shape &shape, int64_t heads,
                                       bool masked_to_zero, const attention_tensors<T> &tensors,
                                       three_tiles<T> &tiles) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const tile_thread<T> thread;
  const int64_t head = blockIdx.x % heads,
                query = ((gridDim.x - 1 - blockIdx.x) / heads) * tile_edge<T>,
                column = static_cast<int64_t>(blockIdx.y) * parts * tile_edge<T>;
  const auto q = matrix_of(tensors.q, shape.batch, shape.q, head, sizes.queries, sizes.size),
             k = matrix_of(tensors.k, shape.batch, shape.k, head, sizes.keys, sizes.size),
             v = matrix_of(tensors.v, shape.batch, shape.v, head, sizes.keys, sizes.value_size);
  const head_masks<S> masks = masks_of(shape, tensors, head);
  row_state<T> state;
  S result[parts][4][4] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    state.largest[r] = hidden_score<S>;
    state.sum[r] = 0;
  }
  const int64_t end = end_of_keys(sizes, query + tile_edge<T> - 1);
  for (int64_t key = 0; key < end; key += tile_edge<T>) {
    S scores[4][4] = {};
    add_scores(q, query, k, key, /*keeps_left=*/key > 0, tiles, scores);
    weigh<T>(sizes, static_cast<S>(shape.scale), masks, query, key, scores, state, tiles.weights);
    for_each_part<T, parts>(column, sizes.value_size, [&](int part, int64_t first) {
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          result[part][r][c] *= state.factor[r];
      load_tile(v, key, first, tiles.right);
      __syncthreads();
      multiply<T, false>(tiles.weights, tiles.right, groups_in<T>(end - key), result[part]);
      __syncthreads();
    });
  }
  const auto to =
      matrix_of(tensors.result, shape.batch, shape.result, head, sizes.queries, sizes.value_size);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const row_end<S> last(state.largest[r], state.sum[r], masked_to_zero);
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        result[part][r][c] /= last.divisor;
    const int64_t row = query + thread.row(r);
    if (thread.x == 0 && blockIdx.y == 0 && row < sizes.queries)
      tensors.log_sum[head * sizes.queries + row] = last.log_sum;
  }
  store_parts<T, parts>(result, S(1), query, column, to);
}

// Kernels that are no templates have shared memory of their own, as the stand-in wants it.
#define SQUARE_FORWARD(name, T, parts)                                                             \
  __global__ void __launch_bounds__(tile_threads<T>)                                               \
      name(attention_shape shape, int64_t heads, bool masked_to_zero, const T *q, const T *k,      \
           const T *v, const attention_sum<T> *first_mask, const attention_sum<T> *second_mask,    \
           T *result, attention_sum<T> *log_sum) {                                                 \
    __shared__ three_tiles<T> tiles;                                                               \
    attend<T, parts>(shape, heads, masked_to_zero,                                                 \
                     {q, k, v, {first_mask, second_mask}, result, log_sum}, tiles);                \
  }
SQUARE_FORWARD(attention_f32, float, 1)
SQUARE_FORWARD(attention_f32_wide, float, 2)
SQUARE_FORWARD(attention_f64, double, 1)
SQUARE_FORWARD(attention_bf16_wide, bfloat16, 2)
#undef SQUARE_FORWARD

template <typename T, typename Kernel>
void start(Kernel kernel, int parts, const attention_shape &shape, bool masked_to_zero,
           const attention_tensors<T> &tensors) {
  const attention_extents<T> all{shape, tensors};
  const attention_sizes &sizes = shape.sizes;
  launch("attention", kernel,
         {blocks_of(all.heads() * parts_of(sizes.queries, tile_edge<T>)), tile_threads<T>,
          static_cast<unsigned>(parts_of(sizes.value_size, parts * tile_edge<T>))},
         shape, all.heads(), masked_to_zero, all.q(), all.k(), all.v(), all.mask(0), all.mask(1),
         all.result(), all.log_sum());
}

} // namespace

template <>
void attention_on_squares(const attention_shape &shape, bool masked_to_zero,
                          const attention_tensors<float> &tensors) {
  const bool is_wide = shape.sizes.value_size > tile_edge<float>;
  start(is_wide ? attention_f32_wide : attention_f32, is_wide ? 2 : 1, shape, masked_to_zero,
        tensors);
}

template <>
void attention_on_squares(const attention_shape &shape, bool masked_to_zero,
                          const attention_tensors<double> &tensors) {
  start(attention_f64, 1, shape, masked_to_zero, tensors);
}

template <>
void attention_on_squares(const attention_shape &shape, bool masked_to_zero,
                          const attention_tensors<bfloat16> &tensors) {
  start(attention_bf16_wide, 2, shape, masked_to_zero, tensors);
}

} // namespace trainc
