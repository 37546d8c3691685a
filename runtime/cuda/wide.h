// SPDX-License-Identifier: Apache-2.0
//
// Sixteen bytes at once, the widest access of a thread.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace trainc {

template <typename T> struct wide;
template <> struct wide<float> {
  using type = float4;
  static constexpr int elements = 4;
};
template <> struct wide<double> {
  using type = double2;
  static constexpr int elements = 2;
};

__device__ inline float plus(float a, float b) { return a + b; }
__device__ inline double plus(double a, double b) { return a + b; }
__device__ inline float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ inline double2 plus(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }

template <typename T> bool is_wide_aligned(const T *address) {
  return reinterpret_cast<uintptr_t>(address) % (wide<T>::elements * sizeof(T)) == 0;
}

} // namespace trainc
