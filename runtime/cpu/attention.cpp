// SPDX-License-Identifier: Apache-2.0
//
// Attention, a tile of queries of one head at a time: through the keys with a softmax that corrects
// what it has so far whenever a larger score appears (Milakov and Gimelshein, 2018).
#include "runtime/kernels/attention.h"

#include "runtime/cpu/attention_tiles.h"

namespace trainc {
namespace {

// What a tile of queries has so far, a row for each query.
template <typename P, typename S> struct running_softmax {
  S *scores, factor; // what these have still to be multiplied by
  P *weights;        // not yet divided by `sum`; may be where the scores are
  S *largest, *sum;
  S *result;
  int64_t value_size;
};

// Weights of `columns` keys from `key` on for `rows` queries from `query` on.
template <typename T, typename P, typename S>
void weigh(const attention_sizes &sizes, const tile_masks<S> &masks, const tile_dropout<S> &dropout,
           int64_t query, int64_t rows, int64_t key, int64_t columns,
           const running_softmax<P, S> &state) {
  const int64_t reach = sizes.reach, leading = whole_lanes(columns);
  vectorised<S>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      S *scores = state.scores + i * leading;
      P *weights = state.weights + i * leading;
      const int64_t open = query + i + reach + 1 - key;
      const int64_t seen = open < 0 ? 0 : open < columns ? open : columns;
      multiply_scores(scores, seen, state.factor);
      masks.add(i, seen, scores);
      hide_rest(scores, seen);
      S partial[lanes];
      set_lanes(partial, lanes, state.largest[i]);
      in_lanes(int64_t(0), whole_lanes(seen), [&](int64_t j, int lane) ALWAYS_INLINED {
        partial[lane] = maximum(partial[lane], scores[j]);
      });
      const S largest = max_lanes(partial);
      const S base = largest == hidden_score<S> ? S(0) : largest; // exp(-infinity - 0) = 0
      set_lanes(partial, lanes, S(0));
      dropout.apply(i, seen, [&](auto drop) ALWAYS_INLINED {
        in_lanes(int64_t(0), whole_lanes(seen), [&](int64_t j, int lane) ALWAYS_INLINED {
          const S weight = exp(scores[j] - base);
          partial[lane] += weight;
          store_read<T>(drop(weight, j), weights[j]);
        });
      });
      for (int64_t j = seen; j < columns; ++j)
        weights[j] = P(0);
      const S factor = key > 0 ? exp(state.largest[i] - base) : S(0); // nothing came before
      state.sum[i] = state.sum[i] * factor + sum_lanes(partial);
      state.largest[i] = largest;
      S *result = state.result + i * state.value_size;
      if (key > 0 && factor != 1)
#pragma omp simd
        for (int64_t d = 0; d < state.value_size; ++d)
          result[d] *= factor;
    }
  });
}

// Divides by the sums; those of rows that see no key are 0.
template <typename P, typename S>
void finish(const running_softmax<P, S> &state, int64_t rows, bool masked_to_zero, S *log_sum) {
  vectorised<S>([=]() INLINED {
    for (int64_t i = 0; i < rows; ++i) {
      const bool sees_none = state.sum[i] == 0;
      const bool is_zero = sees_none & masked_to_zero;
      log_sum[i] = is_zero ? std::numeric_limits<S>::infinity() // then a key's weight is 0
                           : state.largest[i] + log(state.sum[i]);
      log_sum[i] = sees_none & !masked_to_zero ? std::numeric_limits<S>::quiet_NaN() : log_sum[i];
      S *result = state.result + i * state.value_size;
      const S divisor = is_zero ? S(1) : state.sum[i];
#pragma omp simd
      for (int64_t d = 0; d < state.value_size; ++d)
        result[d] /= divisor;
    }
  });
}

template <typename T, typename P>
void attend(const attention_shape &shape, bool masked_to_zero, const attention_tensors<T> &tensors,
            int64_t head, int64_t query) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const int64_t rows = std::min(tile_queries, sizes.queries - query);
  const attention_factors<P> factors(shape.scale);
  constexpr bool weighs_in_place = std::is_same_v<P, S>;
  tile_memory<S> memory(
      tile_queries * (tile_keys * (weighs_in_place ? 1 : 2) + sizes.size + sizes.value_size + 2) +
      tile_keys * (sizes.size + sizes.value_size));
  running_softmax<P, S> state = {};
  state.scores = memory.template take<S>(tile_queries * tile_keys);
  if constexpr (weighs_in_place)
    state.weights = state.scores;
  else
    state.weights = memory.template take<P>(tile_queries * tile_keys);
  state.factor = static_cast<S>(factors.of_scores);
  state.result = memory.template take<S>(tile_queries * sizes.value_size);
  state.value_size = sizes.value_size;
  state.largest = memory.template take<S>(tile_queries);
  state.sum = memory.template take<S>(tile_queries);
  P *copy_q = memory.template take<P>(tile_queries * sizes.size),
    *copy_k = memory.template take<P>(tile_keys * sizes.size),
    *copy_v = memory.template take<P>(tile_keys * sizes.value_size);
  std::fill_n(state.largest, rows, hidden_score<S>);
  std::fill_n(state.sum, rows, S(0));
  std::fill_n(state.result, rows * sizes.value_size, S(0));
  const T *k = tensors.k + head_offset(shape.batch, shape.k, head),
          *v = tensors.v + head_offset(shape.batch, shape.v, head);
  const tile_matrix<P> queries = load_tile(tensors.q + head_offset(shape.batch, shape.q, head),
                                           shape.q, query, rows, sizes.size, copy_q);
  const int64_t end = seen_keys(sizes, query + rows - 1, 0, sizes.keys);
  for (int64_t key = 0; key < end; key += tile_keys) {
    const int64_t columns = std::min(tile_keys, end - key);
    const tile_matrix<P> keys = load_tile(k, shape.k, key, columns, sizes.size, copy_k);
    multiply_rows('N', 'T', rows, columns, sizes.size, factors.of_product, queries.data,
                  queries.leading, keys.data, keys.leading, S(0), state.scores,
                  whole_lanes(columns));
    weigh<T>(sizes, masks_of(shape, tensors, head, query, key),
             dropout_of(shape, tensors, head, query, key), query, rows, key, columns, state);
    const tile_matrix<P> values = load_tile(v, shape.v, key, columns, sizes.value_size, copy_v);
    multiply_rows('N', 'N', rows, sizes.value_size, columns, 1, state.weights, whole_lanes(columns),
                  values.data, values.leading, S(key == 0 ? 0 : 1), state.result, sizes.value_size);
  }
  finish(state, rows, masked_to_zero, tensors.log_sum + head * sizes.queries + query);
  store_tile(state.result, sizes.value_size,
             tensors.result + head_offset(shape.batch, shape.result, head), shape.result, query,
             rows, sizes.value_size);
}

} // namespace

template <typename T>
void compute_attention(const attention_shape &shape, bool masked_to_zero,
                       const attention_tensors<T> &tensors) {
  const int64_t tiles = (shape.sizes.queries + tile_queries - 1) / tile_queries;
  with_product_type<T>([&]<typename P>(P) {
    for_each_item(shape, head_count(shape.batch) * tiles, [&](int64_t item) {
      attend<T, P>(shape, masked_to_zero, tensors, item / tiles, item % tiles * tile_queries);
    });
  });
}

template void compute_attention(const attention_shape &, bool, const attention_tensors<float> &);
template void compute_attention(const attention_shape &, bool, const attention_tensors<double> &);
template void compute_attention(const attention_shape &, bool, const attention_tensors<bfloat16> &);
template void compute_attention(const attention_shape &, bool, const attention_tensors<float16> &);

} // namespace trainc
