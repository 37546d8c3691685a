// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tiles: dq, where a block has a tile of queries, and dk and dv, where
// a block has a tile of keys.
#include "runtime/cuda/attention/tile_gradient.h"

namespace trainc {
namespace {

// `parts` tiles of the columns of dq for each block along y.
template <typename Tiles, int parts>
__device__ __forceinline__ void find_dq(const attention_shape &shape,
                                        const attention_gradient_layouts &layouts, int64_t heads,
                                        const gradient_inputs<typename Tiles::element> &in,
                                        typename Tiles::element *dq, three_tiles<Tiles> &tiles) {
  using S = typename Tiles::sum;
  const attention_sizes &sizes = shape.sizes;
  const int64_t head = blockIdx.x % heads,
                query = ((gridDim.x - 1 - blockIdx.x) / heads) * Tiles::edge,
                column = static_cast<int64_t>(blockIdx.y) * parts * Tiles::edge;
  const S scale = static_cast<S>(shape.scale);
  const gradient_head<typename Tiles::element> of(shape, layouts.dresult, in, head);
  thread_sums<Tiles> sums[parts] = {};
  const int64_t end = end_of_keys(sizes, query + Tiles::edge - 1);
  for (int64_t key = 0; key < end; key += Tiles::edge) {
    thread_sums<Tiles> weights, slopes;
    differentiate<Tiles>(sizes, scale, of, query, key, tiles, weights, slopes);
    publish<Tiles>(slopes, tiles.weights);
    for_each_part<Tiles, parts>(column, sizes.size, [&](int part, int64_t first) {
      Tiles::load(of.k, key, first, tiles.right);
      __syncthreads();
      Tiles::template multiply<false>(tiles.weights, tiles.right, end - key, sizes.size - first,
                                      tiles, sums[part]);
      __syncthreads();
    });
  }
  store_parts<Tiles, parts>(
      sums, scale, query, column,
      matrix_of(dq, shape.batch, layouts.dq, head, sizes.queries, sizes.size));
}

// sums += the columns of `numbers` times rows, of the tile of queries from `query` on
template <typename Tiles, int parts>
__device__ __forceinline__ void
add_to_keys(const typename Tiles::tile &numbers,
            const head_matrix<const typename Tiles::element> &rows, int64_t query, int64_t column,
            three_tiles<Tiles> &tiles, thread_sums<Tiles> (&sums)[parts]) {
  for_each_part<Tiles, parts>(column, rows.columns, [&](int part, int64_t first) {
    Tiles::load(rows, query, first, tiles.right);
    __syncthreads();
    Tiles::multiply_rows(numbers, tiles.right, rows.rows - query, rows.columns - first, tiles,
                         sums[part]);
    __syncthreads();
  });
}

// Of the heads of queries that share a head of keys, one after the other.
template <typename Tiles, int parts>
__device__ __forceinline__ void
find_dk_and_dv(const attention_shape &shape, const attention_gradient_layouts &layouts,
               int64_t key_heads, const gradient_inputs<typename Tiles::element> &in,
               typename Tiles::element *dk, typename Tiles::element *dv,
               three_tiles<Tiles> &tiles) {
  using S = typename Tiles::sum;
  const attention_sizes &sizes = shape.sizes;
  const int64_t first_head = blockIdx.x % key_heads * sizes.sharing,
                key = blockIdx.x / key_heads * Tiles::edge,
                column = static_cast<int64_t>(blockIdx.y) * parts * Tiles::edge;
  const S scale = static_cast<S>(shape.scale);
  const int64_t begin = first_query(sizes, key) / Tiles::edge * Tiles::edge;
  thread_sums<Tiles> of_keys[parts] = {}, of_values[parts] = {};
  for (int64_t head = first_head; head < first_head + sizes.sharing; ++head) {
    const gradient_head<typename Tiles::element> of(shape, layouts.dresult, in, head);
    for (int64_t query = begin; query < sizes.queries; query += Tiles::edge) {
      {
        thread_sums<Tiles> weights, slopes;
        differentiate<Tiles>(sizes, scale, of, query, key, tiles, weights, slopes);
        publish<Tiles>(weights, tiles.weights);
        publish<Tiles>(slopes, tiles.left);
      }
      add_to_keys<Tiles, parts>(tiles.weights, of.dresult, query, column, tiles, of_values);
      add_to_keys<Tiles, parts>(tiles.left, of.q, query, column, tiles, of_keys);
    }
  }
  store_parts<Tiles, parts>(
      of_keys, scale, key, column,
      matrix_of(dk, shape.batch, layouts.dk, first_head, sizes.keys, sizes.size));
  store_parts<Tiles, parts>(
      of_values, S(1), key, column,
      matrix_of(dv, shape.batch, layouts.dv, first_head, sizes.keys, sizes.value_size));
}

// Kernels that are not templates have shared memory of their own, as the stand-in wants it.
#define TILE_GRADIENT(name, T, parts)                                                              \
  __global__ void __launch_bounds__(gradient_tiles_of<T>::threads, 1)                              \
      name##_dq(attention_shape shape, attention_gradient_layouts layouts, int64_t heads,          \
                GRADIENT_INPUTS(T), T *dq) {                                                       \
    __shared__ three_tiles<gradient_tiles_of<T>> tiles;                                            \
    find_dq<gradient_tiles_of<T>, parts>(shape, layouts, heads, GATHERED_INPUTS, dq, tiles);       \
  }                                                                                                \
  __global__ void __launch_bounds__(gradient_tiles_of<T>::threads, 1)                              \
      name##_dk_dv(attention_shape shape, attention_gradient_layouts layouts, int64_t heads,       \
                   GRADIENT_INPUTS(T), T *dk, T *dv) {                                             \
    __shared__ three_tiles<gradient_tiles_of<T>> tiles;                                            \
    find_dk_and_dv<gradient_tiles_of<T>, parts>(shape, layouts, heads, GATHERED_INPUTS, dk, dv,    \
                                                tiles);                                            \
  }
TILE_GRADIENT(attention_f32, float, 1)
TILE_GRADIENT(attention_f32_wide, float, 2)
TILE_GRADIENT(attention_f64, double, 1)
TILE_GRADIENT(attention_bf16, bfloat16, 1)
TILE_GRADIENT(attention_f16, float16, 1)
#undef TILE_GRADIENT

template <typename T, typename OfQueries, typename OfKeys>
void start(OfQueries of_queries, OfKeys of_keys, int64_t parts,
           const attention_gradient_call<T> &call) {
  const attention_sizes &sizes = call.shape.sizes;
  const attention_gradient_extents<T> all(call);
  const int64_t heads = all.of.heads(), key_heads = heads / sizes.sharing,
                columns = parts * gradient_tiles_of<T>::edge;
  launch_gradient("attention's gradient of queries", of_queries,
                  {blocks_of(heads * parts_of(sizes.queries, gradient_tiles_of<T>::edge)),
                   gradient_tiles_of<T>::threads,
                   static_cast<unsigned>(parts_of(sizes.size, columns))},
                  call, heads, all.dq());
  launch_gradient(
      "attention's gradient of keys and values", of_keys,
      {blocks_of(key_heads * parts_of(sizes.keys, gradient_tiles_of<T>::edge)),
       gradient_tiles_of<T>::threads,
       static_cast<unsigned>(parts_of(std::max(sizes.size, sizes.value_size), columns))},
      call, key_heads, all.dk(), all.dv());
}

} // namespace

template <> void gradient_on_tiles(const attention_gradient_call<float> &call) {
  const attention_sizes &sizes = call.shape.sizes;
  if (std::max(sizes.size, sizes.value_size) <= gradient_tiles_of<float>::edge)
    start(attention_f32_dq, attention_f32_dk_dv, 1, call);
  else
    start(attention_f32_wide_dq, attention_f32_wide_dk_dv, 2, call);
}

template <> void gradient_on_tiles(const attention_gradient_call<double> &call) {
  start(attention_f64_dq, attention_f64_dk_dv, 1, call);
}

template <> void gradient_on_tiles(const attention_gradient_call<bfloat16> &call) {
  start(attention_bf16_dq, attention_bf16_dk_dv, 1, call);
}

template <> void gradient_on_tiles(const attention_gradient_call<float16> &call) {
  start(attention_f16_dq, attention_f16_dk_dv, 1, call);
}

} // namespace trainc
