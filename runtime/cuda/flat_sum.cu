// SPDX-License-Identifier: Apache-2.0
//
// Each element is added on its own, by whichever thread: the bits do not depend on
// the grid.
#include "runtime/cuda/flat_sum.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/wide.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr unsigned block_threads = 256;
constexpr int64_t most_blocks = 2048; // some for every multiprocessor

// Elements of type V, a wide one or a single one.
template <typename V> struct sum_sources {
  const V *initial, *own, *received;
  int64_t stride; // elements V
  int rank, ranks;
};

template <typename V> __device__ V source_value(const sum_sources<V> &from, int rank, int64_t i) {
  if (rank == from.rank)
    return from.own[i];
  return from.received[(rank < from.rank ? rank : rank - 1) * from.stride + i];
}

template <typename V>
__device__ void sum_elements(const sum_sources<V> &from, int64_t begin, int64_t end, V *target) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = begin + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
       i += step) {
    V total = source_value(from, 0, i);
    if (from.initial)
      total = plus(from.initial[i], total);
    for (int rank = 1; rank < from.ranks; ++rank)
      total = plus(total, source_value(from, rank, i));
    target[i] = total;
  }
}

template <typename T>
__global__ void flat_sum(const T *initial, const T *own, const T *received, int64_t stride,
                         int rank, int ranks, int64_t count, T *target) {
  using V = typename wide<T>::type;
  constexpr int width = wide<T>::elements;
  const int64_t whole = count / width;
  sum_elements<V>({reinterpret_cast<const V *>(initial), reinterpret_cast<const V *>(own),
                   reinterpret_cast<const V *>(received), stride / width, rank, ranks},
                  0, whole, reinterpret_cast<V *>(target));
  sum_elements<T>({initial, own, received, stride, rank, ranks}, whole * width, count, target);
}

template <typename T> void queue(const summands &from, int64_t count, char *target) {
  auto elements = [](const char *address) { return reinterpret_cast<const T *>(address); };
  const int64_t per_block = int64_t{block_threads} * wide<T>::elements;
  const int64_t blocks = std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most_blocks);
  launch(
      "sum of gradients", flat_sum<T>, {static_cast<unsigned>(blocks), block_threads},
      reads(elements(from.initial), from.initial ? count : 0), reads(elements(from.own), count),
      reads(elements(from.received), from.ranks > 1 ? (from.ranks - 2) * from.stride + count : 0),
      from.stride, from.rank, from.ranks, count, writes(reinterpret_cast<T *>(target), count));
}

} // namespace

void queue_flat_sum(data_type type, const summands &from, int64_t count, char *target) {
  if (type == data_type::f64)
    queue<double>(from, count, target);
  else
    queue<float>(from, count, target);
}

cudaError_t find_flat_sum() {
  cudaFuncAttributes attributes;
  cudaError_t status = cudaFuncGetAttributes(&attributes, flat_sum<float>);
  return status == cudaSuccess ? cudaFuncGetAttributes(&attributes, flat_sum<double>) : status;
}

} // namespace trainc
