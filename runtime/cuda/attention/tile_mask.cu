// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a mask: that of the scores, added up over the heads for which the mask is the
// same. A block has a tile of one of its matrices and adds up those heads in order.
#include "runtime/cuda/attention/tile_gradient.h"

namespace trainc {
namespace {

// The heads of one matrix of the gradient: some of the batch's indices are the matrix's, the others
// are added up.
struct heads_of_matrix {
  int64_t added = 1, matrices = 1;

  __host__ __device__ heads_of_matrix(const attention_batch &batch, const matrix_layout &dmask) {
    for (int d = 0; d < batch_rank(batch.of); ++d)
      (dmask.batch_strides[d] == 0 ? added : matrices) *= batch.of[d];
  }

  __device__ int64_t head(const attention_batch &batch, const matrix_layout &dmask, int64_t matrix,
                          int64_t number) const {
    int64_t head = 0, place = 1, of_matrix = 1, of_number = 1;
    for (int d = batch_rank(batch.of) - 1; d >= 0; --d) {
      const int64_t size = batch.of[d];
      const bool is_added = dmask.batch_strides[d] == 0;
      head += (is_added ? number / of_number : matrix / of_matrix) % size * place;
      of_number *= is_added ? size : 1;
      of_matrix *= is_added ? 1 : size;
      place *= size;
    }
    return head;
  }
};

template <typename Tiles>
__device__ __forceinline__ void
find_dmask(const attention_shape &shape, const attention_gradient_layouts &layouts,
           int64_t matrices, const gradient_inputs<typename Tiles::element> &in,
           typename Tiles::sum *dmask, three_tiles<Tiles> &tiles) {
  using S = typename Tiles::sum;
  const attention_sizes &sizes = shape.sizes;
  const Tiles thread;
  const matrix_layout &layout = shape.masks.of[sizes.masks];
  const heads_of_matrix heads(shape.batch, layout);
  const int64_t matrix = blockIdx.x % matrices, tile = blockIdx.x / matrices,
                tiles_of_keys = (sizes.keys + Tiles::edge - 1) / Tiles::edge,
                query = tile / tiles_of_keys * Tiles::edge,
                key = tile % tiles_of_keys * Tiles::edge;
  thread_sums<Tiles> sums = {};
  const bool is_seen = key < end_of_keys(sizes, query + Tiles::edge - 1);
  for (int64_t i = 0; i < heads.added && is_seen; ++i) {
    const gradient_head<typename Tiles::element> of(shape, layouts.dresult, in,
                                                    heads.head(shape.batch, layout, matrix, i));
    thread_sums<Tiles> weights, slopes;
    differentiate<Tiles>(sizes, static_cast<S>(shape.scale), of, query, key, tiles, weights,
                         slopes);
    for_each_sum<Tiles>([&](int r, int c) { sums[r][c] += slopes[r][c]; });
  }
  const auto to = matrix_of(dmask, shape.batch, layout, heads.head(shape.batch, layout, matrix, 0),
                            sizes.queries, sizes.keys);
  for_each_sum<Tiles>([&](int r, int c) {
    const int64_t i = query + thread.row(r), j = key + thread.score(c);
    if ((i < sizes.queries) & (j < sizes.keys))
      to.at(i, j) = sums[r][c];
  });
}

#define MASK_GRADIENT(name, T)                                                                     \
  __global__ void __launch_bounds__(gradient_tiles_of<T>::threads, 1)                              \
      name(attention_shape shape, attention_gradient_layouts layouts, int64_t matrices,            \
           GRADIENT_INPUTS(T), attention_sum<T> *dmask) {                                          \
    __shared__ three_tiles<gradient_tiles_of<T>> tiles;                                            \
    find_dmask<gradient_tiles_of<T>>(shape, layouts, matrices, GATHERED_INPUTS, dmask, tiles);     \
  }                                                                                                \
  auto mask_gradient(const T *) { return name; }
MASK_GRADIENT(attention_f32_dmask, float)
MASK_GRADIENT(attention_f64_dmask, double)
MASK_GRADIENT(attention_bf16_dmask, bfloat16)
MASK_GRADIENT(attention_f16_dmask, float16)
#undef MASK_GRADIENT

} // namespace

template <typename T> void mask_gradient_on_tiles(const attention_gradient_call<T> &call) {
  const attention_sizes &sizes = call.shape.sizes;
  const int64_t matrices =
      heads_of_matrix(call.shape.batch, call.shape.masks.of[sizes.masks]).matrices;
  launch_gradient("attention's gradient of a mask", mask_gradient(call.tensors.q),
                  {blocks_of(matrices * parts_of(sizes.queries, gradient_tiles_of<T>::edge) *
                             parts_of(sizes.keys, gradient_tiles_of<T>::edge)),
                   gradient_tiles_of<T>::threads},
                  call, matrices, attention_gradient_extents<T>(call).dmask());
}

template void mask_gradient_on_tiles(const attention_gradient_call<float> &);
template void mask_gradient_on_tiles(const attention_gradient_call<double> &);
template void mask_gradient_on_tiles(const attention_gradient_call<bfloat16> &);
template void mask_gradient_on_tiles(const attention_gradient_call<float16> &);

} // namespace trainc
