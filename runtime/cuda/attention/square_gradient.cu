// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on square tiles: dq, of which a block has a tile of queries, and dk and
// dv, of which a block has a tile of keys.
#include "runtime/cuda/attention/square_gradient.h"

namespace trainc {
namespace {

// `parts` tiles of the columns of dq for each block along y.
template <typename T, int parts>
__device__ __forceinline__ void
find_dq(const attention_shape &shape, const attention_gradient_layouts &layouts, int64_t heads,
        const gradient_inputs<T> &in, T *dq, three_tiles<T> &tiles) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const int64_t head = blockIdx.x % heads,
                query = ((gridDim.x - 1 - blockIdx.x) / heads) * tile_edge<T>,
                column = static_cast<int64_t>(blockIdx.y) * parts * tile_edge<T>;
  const S scale = static_cast<S>(shape.scale);
  const gradient_head<T> of(shape, layouts.dresult, in, head);
  S sums[parts][4][4] = {};
  const int64_t end = end_of_keys(sizes, query + tile_edge<T> - 1);
  for (int64_t key = 0; key < end; key += tile_edge<T>) {
    S weights[4][4], slopes[4][4];
    differentiate<T>(sizes, scale, of, query, key, tiles, weights, slopes);
    publish<T>(slopes, tiles.weights);
    for_each_part<T, parts>(column, sizes.size, [&](int part, int64_t first) {
      load_tile(of.k, key, first, tiles.right);
      __syncthreads();
      multiply<T, false>(tiles.weights, tiles.right, groups_in<T>(end - key), sums[part]);
      __syncthreads();
    });
  }
  store_parts<T, parts>(sums, scale, query, column,
                        matrix_of(dq, shape.batch, layouts.dq, head, sizes.queries, sizes.size));
}

// sums += numbers' rows, of the tile of queries from `query` on
template <typename T, int parts>
__device__ __forceinline__ void
add_to_keys(const thread_sums<T> &numbers, const head_matrix<const T> &rows, int64_t query,
            int64_t column, three_tiles<T> &tiles, thread_sums<T> (&sums)[parts]) {
  publish<T>(numbers, tiles.weights);
  for_each_part<T, parts>(column, rows.columns, [&](int part, int64_t first) {
    load_tile(rows, query, first, tiles.right);
    __syncthreads();
    multiply_transposed<T>(tiles.weights, tiles.right, groups_in<T>(rows.rows - query), sums[part]);
    __syncthreads();
  });
}

// Of the heads of queries that share a head of keys, one after the other.
template <typename T, int parts>
__device__ __forceinline__ void find_dk_and_dv(const attention_shape &shape,
                                               const attention_gradient_layouts &layouts,
                                               int64_t key_heads, const gradient_inputs<T> &in,
                                               T *dk, T *dv, three_tiles<T> &tiles) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const int64_t first_head = blockIdx.x % key_heads * sizes.sharing,
                key = blockIdx.x / key_heads * tile_edge<T>,
                column = static_cast<int64_t>(blockIdx.y) * parts * tile_edge<T>;
  const S scale = static_cast<S>(shape.scale);
  const int64_t begin = first_query(sizes, key) / tile_edge<T> * tile_edge<T>;
  S of_keys[parts][4][4] = {}, of_values[parts][4][4] = {};
  for (int64_t head = first_head; head < first_head + sizes.sharing; ++head) {
    const gradient_head<T> of(shape, layouts.dresult, in, head);
    for (int64_t query = begin; query < sizes.queries; query += tile_edge<T>) {
      S weights[4][4], slopes[4][4];
      differentiate<T>(sizes, scale, of, query, key, tiles, weights, slopes);
      add_to_keys<T, parts>(weights, of.dresult, query, column, tiles, of_values);
      add_to_keys<T, parts>(slopes, of.q, query, column, tiles, of_keys);
    }
  }
  store_parts<T, parts>(of_keys, scale, key, column,
                        matrix_of(dk, shape.batch, layouts.dk, first_head, sizes.keys, sizes.size));
  store_parts<T, parts>(
      of_values, S(1), key, column,
      matrix_of(dv, shape.batch, layouts.dv, first_head, sizes.keys, sizes.value_size));
}

// Kernels that are no templates have shared memory of their own, as the stand-in wants it.
#define SQUARE_GRADIENT(name, T, parts)                                                            \
  __global__ void __launch_bounds__(tile_threads<T>)                                               \
      name##_dq(attention_shape shape, attention_gradient_layouts layouts, int64_t heads,          \
                GRADIENT_INPUTS(T), T *dq) {                                                       \
    __shared__ three_tiles<T> tiles;                                                               \
    find_dq<T, parts>(shape, layouts, heads, GATHERED_INPUTS, dq, tiles);                          \
  }                                                                                                \
  __global__ void __launch_bounds__(tile_threads<T>)                                               \
      name##_dk_dv(attention_shape shape, attention_gradient_layouts layouts, int64_t heads,       \
                   GRADIENT_INPUTS(T), T *dk, T *dv) {                                             \
    __shared__ three_tiles<T> tiles;                                                               \
    find_dk_and_dv<T, parts>(shape, layouts, heads, GATHERED_INPUTS, dk, dv, tiles);               \
  }
SQUARE_GRADIENT(attention_f32, float, 1)
SQUARE_GRADIENT(attention_f32_wide, float, 2)
SQUARE_GRADIENT(attention_f64, double, 1)
SQUARE_GRADIENT(attention_bf16_wide, bfloat16, 2)
#undef SQUARE_GRADIENT

template <typename T, typename OfQueries, typename OfKeys>
void start(OfQueries of_queries, OfKeys of_keys, int64_t parts,
           const attention_gradient_call<T> &call) {
  const attention_sizes &sizes = call.shape.sizes;
  const attention_gradient_extents<T> all(call);
  const int64_t heads = all.of.heads(), key_heads = heads / sizes.sharing,
                columns = parts * tile_edge<T>;
  launch_gradient("attention's gradient of queries", of_queries,
                  {blocks_of(heads * parts_of(sizes.queries, tile_edge<T>)), tile_threads<T>,
                   static_cast<unsigned>(parts_of(sizes.size, columns))},
                  call, heads, all.dq());
  launch_gradient(
      "attention's gradient of keys and values", of_keys,
      {blocks_of(key_heads * parts_of(sizes.keys, tile_edge<T>)), tile_threads<T>,
       static_cast<unsigned>(parts_of(std::max(sizes.size, sizes.value_size), columns))},
      call, key_heads, all.dk(), all.dv());
}

} // namespace

template <> void gradient_on_squares(const attention_gradient_call<float> &call) {
  const attention_sizes &sizes = call.shape.sizes;
  if (std::max(sizes.size, sizes.value_size) <= tile_edge<float>)
    start(attention_f32_dq, attention_f32_dk_dv, 1, call);
  else
    start(attention_f32_wide_dq, attention_f32_wide_dk_dv, 2, call);
}

template <> void gradient_on_squares(const attention_gradient_call<double> &call) {
  start(attention_f64_dq, attention_f64_dk_dv, 1, call);
}

template <> void gradient_on_squares(const attention_gradient_call<bfloat16> &call) {
  start(attention_bf16_wide_dq, attention_bf16_wide_dk_dv, 2, call);
}

} // namespace trainc
