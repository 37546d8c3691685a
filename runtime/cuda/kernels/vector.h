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

__device__ inline four<float> load_four(const float *address) {
  const float4 v = vector_at<float4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<double> load_four(const double *address) {
  const double2 low = vector_at<double2>(address), high = vector_at<double2>(address + 2);
  return {low.x, low.y, high.x, high.y};
}
__device__ inline four<int32_t> load_four(const int32_t *address) {
  const int4 v = vector_at<int4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<int64_t> load_four(const int64_t *address) {
  const longlong2 low = vector_at<longlong2>(address), high = vector_at<longlong2>(address + 2);
  return {low.x, low.y, high.x, high.y};
}
__device__ inline four<uint8_t> load_four(const uint8_t *address) {
  const uchar4 v = vector_at<uchar4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<int8_t> load_four(const int8_t *address) {
  const char4 v = vector_at<char4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<int16_t> load_four(const int16_t *address) {
  const short4 v = vector_at<short4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<uint16_t> load_four(const uint16_t *address) {
  const ushort4 v = vector_at<ushort4>(address);
  return {v.x, v.y, v.z, v.w};
}
__device__ inline four<uint32_t> load_four(const uint32_t *address) {
  const uint4 v = vector_at<uint4>(address);
  return {v.x, v.y, v.z, v.w};
}
template <typename Format>
__device__ inline four<narrow_float<Format>> load_four(const narrow_float<Format> *address) {
  using number = narrow_float<Format>;
  const ushort4 v = vector_at<ushort4>(address);
  return {number::of_bits(v.x), number::of_bits(v.y), number::of_bits(v.z), number::of_bits(v.w)};
}

__device__ inline void store_four(float *address, const four<float> &v) {
  set_vector(address, make_float4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(double *address, const four<double> &v) {
  set_vector(address, make_double2(v[0], v[1]));
  set_vector(address + 2, make_double2(v[2], v[3]));
}
__device__ inline void store_four(int32_t *address, const four<int32_t> &v) {
  set_vector(address, make_int4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(int64_t *address, const four<int64_t> &v) {
  set_vector(address, make_longlong2(v[0], v[1]));
  set_vector(address + 2, make_longlong2(v[2], v[3]));
}
__device__ inline void store_four(uint8_t *address, const four<uint8_t> &v) {
  set_vector(address, make_uchar4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(int8_t *address, const four<int8_t> &v) {
  set_vector(address, make_char4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(int16_t *address, const four<int16_t> &v) {
  set_vector(address, make_short4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(uint16_t *address, const four<uint16_t> &v) {
  set_vector(address, make_ushort4(v[0], v[1], v[2], v[3]));
}
__device__ inline void store_four(uint32_t *address, const four<uint32_t> &v) {
  set_vector(address, make_uint4(v[0], v[1], v[2], v[3]));
}
template <typename Format>
__device__ inline void store_four(narrow_float<Format> *address,
                                  const four<narrow_float<Format>> &v) {
  set_vector(address, make_ushort4(v[0].bits, v[1].bits, v[2].bits, v[3].bits));
}

} // namespace trainc
