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

// Of elements V, a wide one or a single one; strides in such elements.
template <typename V> struct arrays_of {
  const V *gradients, *accumulators;
  int64_t accumulator_stride;
  const V *received;
  int64_t received_stride;
};

template <typename V>
__device__ V summand_value(const arrays_of<V> &from, const summand &each, int64_t i) {
  if (each.array < 0)
    return from.gradients[i];
  if (each.kind == summand::of_accumulators)
    return from.accumulators[each.array * from.accumulator_stride + i];
  return from.received[each.array * from.received_stride + i];
}

template <typename V>
__device__ void sum_elements(const arrays_of<V> &from, const summand *list, int summands,
                             int64_t begin, int64_t end, V *target) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  V waiting[deepest_sum];
  for (int64_t i = begin + static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < end;
       i += step) {
    V last = summand_value(from, list[0], i);
    int count = 0; // that wait before the last
    for (int s = 1; s < summands; ++s) {
      const V value = summand_value(from, list[s], i);
      int additions = list[s].additions;
      if (additions > 0) { // two sources of a rank or two ranks: never through memory
        last = plus(last, value);
        --additions;
      } else {
        waiting[count++] = last;
        last = value;
      }
      for (; additions > 0; --additions)
        last = plus(waiting[--count], last);
    }
    target[i] = last;
  }
}

template <typename T>
__global__ void flat_sum(const T *gradients, const T *accumulators, int64_t accumulator_stride,
                         const T *received, int64_t received_stride, const summand *list,
                         int summands, int64_t count, T *target) {
  using V = typename wide<T>::type;
  constexpr int width = wide<T>::elements;
  const int64_t whole = count / width;
  auto in_wide = [](const T *address) { return reinterpret_cast<const V *>(address); };
  sum_elements<V>({in_wide(gradients), in_wide(accumulators), accumulator_stride / width,
                   in_wide(received), received_stride / width},
                  list, summands, 0, whole, reinterpret_cast<V *>(target));
  sum_elements<T>({gradients, accumulators, accumulator_stride, received, received_stride}, list,
                  summands, whole * width, count, target);
}

template <typename T>
void queue(const summand_arrays &from, const summand_list &list, int64_t count, char *target) {
  auto elements = [](const char *address) { return reinterpret_cast<const T *>(address); };
  // From the first element of the first of several arrays to the last of the last; of accumulators
  // there may be no memory between, where others' elements would be.
  auto extent = [count](int arrays, int64_t stride) {
    return arrays > 0 ? (arrays - 1) * stride + count : 0;
  };
  const int64_t per_block = int64_t{block_threads} * wide<T>::elements;
  const int64_t blocks = std::clamp<int64_t>((count + per_block - 1) / per_block, 1, most_blocks);
  launch("sum of gradients", flat_sum<T>, {static_cast<unsigned>(blocks), block_threads},
         reads(elements(from.gradients), count),
         reads(elements(from.accumulators),
               list.accumulators > 1 ? unknown_extent
                                     : extent(list.accumulators, from.accumulator_stride)),
         from.accumulator_stride,
         reads(elements(from.received), extent(list.received, from.received_stride)),
         from.received_stride, reads(list.first, list.count), list.count, count,
         writes(reinterpret_cast<T *>(target), count));
}

} // namespace

void queue_flat_sum(data_type type, const summand_arrays &arrays, const summand_list &list,
                    int64_t count, char *target) {
  if (type == data_type::f64)
    queue<double>(arrays, list, count, target);
  else
    queue<float>(arrays, list, count, target);
}

cudaError_t find_flat_sum() {
  cudaFuncAttributes attributes;
  cudaError_t status = cudaFuncGetAttributes(&attributes, flat_sum<float>);
  return status == cudaSuccess ? cudaFuncGetAttributes(&attributes, flat_sum<double>) : status;
}

} // namespace trainc
