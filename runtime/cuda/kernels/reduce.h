// SPDX-License-Identifier: Apache-2.0
//
// Reductions over the threads of a warp or a block, in an order that depends on
// nothing but the number of threads: a tree over the lanes of each warp, then one
// over the warps. Every thread gets the result.
#pragma once

#include "runtime/kernels/math.h"

#include <cuda_runtime.h>

namespace trainc {

constexpr unsigned all_lanes = 0xffffffff;

// The value of the thread whose lane differs by `distance`, a power of two.
template <typename T> __device__ inline T from_lane(T value, int distance) {
  return __shfl_xor_sync(all_lanes, value, distance);
}
__device__ inline bool from_lane(bool value, int distance) {
  return __shfl_xor_sync(all_lanes, static_cast<int>(value), distance) != 0;
}

// Over groups of `lanes` neighbouring lanes, a power of two.
template <int lanes, typename T, typename Combine>
__device__ inline T combine_group(T value, Combine combine) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    value = combine(value, from_lane(value, distance));
  return value;
}

// `of_warp` is shared memory for one value of each warp that nothing else uses.
template <int warps, typename T, typename Combine>
__device__ inline T combine_block(T value, T *of_warp, Combine combine) {
  value = combine_group<32>(value, combine);
  if (threadIdx.x % 32 == 0)
    of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return combine_group<warps>(of_warp[threadIdx.x % warps], combine);
}

struct add_values {
  template <typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct maximum_value {
  template <typename T> __device__ T operator()(T a, T b) const { return maximum(a, b); }
};
struct minimum_value {
  template <typename T> __device__ T operator()(T a, T b) const { return minimum(a, b); }
};

template <typename T> __device__ inline T sum_of_warp(T value) {
  return combine_group<32>(value, add_values());
}
template <typename T> __device__ inline T max_of_warp(T value) {
  return combine_group<32>(value, maximum_value());
}
template <typename T> __device__ inline T min_of_warp(T value) {
  return combine_group<32>(value, minimum_value());
}

template <int warps, typename T> __device__ inline T sum_of_block(T value, T (&of_warp)[warps]) {
  return combine_block<warps>(value, of_warp, add_values());
}
template <int warps, typename T> __device__ inline T max_of_block(T value, T (&of_warp)[warps]) {
  return combine_block<warps>(value, of_warp, maximum_value());
}
template <int warps, typename T> __device__ inline T min_of_block(T value, T (&of_warp)[warps]) {
  return combine_block<warps>(value, of_warp, minimum_value());
}

} // namespace trainc
