// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of attention's gradient on tiles share: the weights of a tile of queries
// and keys, and their slopes.
#pragma once

#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/tiles.h"

namespace trainc {

// What a kernel reads.
template <typename T> struct gradient_inputs {
  attention_tensors<T> tensors;
  const T *dresult;
  const attention_sum<T> *log_sum;
  const row_numbers<attention_sum<T>> *rows;
};

// Of one head of queries.
template <typename T> struct gradient_head {
  using S = attention_sum<T>;
  head_matrix<const T> q, k, v, dresult;
  head_masks<S> masks;
  head_dropout<S> dropout;
  const S *log_sum;
  const row_numbers<S> *rows;

  __device__ gradient_head(const attention_shape &shape, const matrix_layout &of_dresult,
                           const gradient_inputs<T> &in, int64_t head)
      : q(matrix_of(in.tensors.q, shape.batch, shape.q, head, shape.sizes.queries,
                    shape.sizes.size)),
        k(matrix_of(in.tensors.k, shape.batch, shape.k, head, shape.sizes.keys, shape.sizes.size)),
        v(matrix_of(in.tensors.v, shape.batch, shape.v, head, shape.sizes.keys,
                    shape.sizes.value_size)),
        dresult(matrix_of(in.dresult, shape.batch, of_dresult, head, shape.sizes.queries,
                          shape.sizes.value_size)),
        masks(masks_of(shape, in.tensors, head)), dropout{shape, in.tensors.key, head},
        log_sum(in.log_sum + head * shape.sizes.queries),
        rows(in.rows + head * shape.sizes.queries) {}
};

// The weights of this thread's pairs of the tile from (query, key) on, as they weigh values, and
// the gradients of their scores.
template <typename Tiles>
__device__ __forceinline__ void
differentiate(const attention_sizes &sizes, typename Tiles::sum scale,
              const gradient_head<typename Tiles::element> &head, int64_t query, int64_t key,
              three_tiles<Tiles> &tiles, thread_sums<Tiles> &weights, thread_sums<Tiles> &slopes) {
  using S = typename Tiles::sum;
  const Tiles thread;
  for_each_sum<Tiles>([&](int r, int c) { weights[r][c] = slopes[r][c] = 0; });
  add_scores<Tiles>(head.q, query, head.k, key, false, tiles, weights);
  add_scores<Tiles>(head.dresult, query, head.v, key, false, tiles, slopes);
#pragma unroll
  for (int r = 0; r < Tiles::thread_rows; ++r) {
    const int64_t i = query + thread.row(r);
    const S log_sum = i < sizes.queries ? head.log_sum[i] : S(0);
    const row_numbers<S> row = i < sizes.queries ? head.rows[i] : row_numbers<S>{};
#pragma unroll
    for (int c = 0; c < Tiles::thread_columns; ++c) {
      const int64_t j = key + thread.score(c);
      S weight = 0;
      if (sees(sizes, i, j))
        weight = exp(head.masks.add(i, j, weights[r][c] * scale) - log_sum) * row.inverse;
      const S factor = head.dropout.factor(i, j);
      weights[r][c] = weight * factor;
      slopes[r][c] = weight == S(0) ? S(0) : weight * (slopes[r][c] * factor - row.mean);
    }
  }
}

// Puts them where all threads read them, as products of the tensors' type do.
template <typename Tiles>
__device__ inline void publish(const thread_sums<Tiles> &numbers, typename Tiles::tile &tile) {
  const Tiles thread;
  for_each_sum<Tiles>([&](int r, int c) {
    tile.set(thread.row(r), thread.score(c), as_read<typename Tiles::element>(numbers[r][c]));
  });
}

// The last parameters of a kernel and what they are.
#define GRADIENT_INPUTS(T)                                                                         \
  const T *q, const T *k, const T *v, const attention_sum<T> *first_mask,                          \
      const attention_sum<T> *second_mask, const int64_t *key, const attention_sum<T> *log_sum,    \
      const T *dresult, const row_numbers<attention_sum<T>> *rows
#define GATHERED_INPUTS                                                                            \
  { {q, k, v, {first_mask, second_mask}, nullptr, nullptr, key}, dresult, log_sum, rows }

// Launches a kernel of the gradient; `results` are the last arguments.
template <typename T, typename Kernel, typename... Results>
void launch_gradient(const char *name, Kernel kernel, launch_shape blocks,
                     const attention_gradient_call<T> &call, int64_t heads, Results... results) {
  const attention_gradient_extents<T> all(call);
  launch(name, kernel, blocks, call.shape, call.layouts, heads, all.of.q(), all.of.k(), all.of.v(),
         all.of.mask(0), all.of.mask(1), all.of.key(), all.log_sum(), all.dresult(), all.rows(),
         results...);
}

} // namespace trainc
