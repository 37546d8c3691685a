// SPDX-License-Identifier: Apache-2.0
//
// Four neighbouring elements at once: 16-byte accesses (two of them where an element has 8 bytes,
// 8 bytes where it has two, 4 where it has one). Addresses are multiples of that.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace trainc {

template <typename T> struct four {
  T lane[4];
  __device__ T &operator[](int i) { return lane[i]; }
  __device__ const T &operator[](int i) const { return lane[i]; }
};

template <typename Vector, typename T> __device__ inline Vector vector_at(const T *address) {
  return *reinterpret_cast<const Vector *>(address);
}
template <typename Vector, typename T> __device__ inline void set_vector(T *address, Vector value) {
  *reinterpret_cast<Vector *>(address) = value;
}

// CUDA's vector of four numbers, of those that have at most four bytes.
template <typename T> struct vector_of_four;
template <> struct vector_of_four<float> { using type = float4; };
template <> struct vector_of_four<int32_t> { using type = int4; };
template <> struct vector_of_four<uint32_t> { using type = uint4; };
template <> struct vector_of_four<int16_t> { using type = short4; };
template <> struct vector_of_four<uint16_t> { using type = ushort4; };
template <> struct vector_of_four<int8_t> { using type = char4; };
template <> struct vector_of_four<uint8_t> { using type = uchar4; };

template <typename T> __device__ inline four<T> load_four(const T *address) {
  const auto v = vector_at<typename vector_of_four<T>::type>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<double> load_four(const double *address) {
  const double2 low = vector_at<double2>(address), high = vector_at<double2>(address + 2);
  return {low.x, low.y, high.x, high.y};
}
__device__ inline four<int64_t> load_four(const int64_t *address) {
  const longlong2 low = vector_at<longlong2>(address), high = vector_at<longlong2>(address + 2);
  return {low.x, low.y, high.x, high.y};
}
template <typename Format>
__device__ inline four<narrow_float<Format>> load_four(const narrow_float<Format> *address) {
  using number = narrow_float<Format>;
  const ushort4 v = vector_at<ushort4>(address);
  return {number::of_bits(v.x), number::of_bits(v.y), number::of_bits(v.z), number::of_bits(v.w)};
}

template <typename T> __device__ inline void store_four(T *address, const four<T> &v) {
  set_vector(address, typename vector_of_four<T>::type{v[0], v[1], v[2], v[3]});
}
__device__ inline void store_four(double *address, const four<double> &v) {
  set_vector(address, make_double2(v[0], v[1]));
  set_vector(address + 2, make_double2(v[2], v[3]));
}
__device__ inline void store_four(int64_t *address, const four<int64_t> &v) {
  set_vector(address, make_longlong2(v[0], v[1]));
  set_vector(address + 2, make_longlong2(v[2], v[3]));
}
template <typename Format>
__device__ inline void store_four(narrow_float<Format> *address,
                                  const four<narrow_float<Format>> &v) {
  set_vector(address, make_ushort4(v[0].bits, v[1].bits, v[2].bits, v[3].bits));
}

} // namespace trainc
