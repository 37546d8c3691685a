// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring elements at once: 16-byte accesses, several where they have more bytes, one of 8, 4
// or 2 where they have fewer. Addresses are multiples of what is accessed at once.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace trainc {

template <typename T, int n> struct pack {
  T lane[n];
  __device__ T &operator[](int i) { return lane[i]; }
  __device__ const T &operator[](int i) const { return lane[i]; }
};

// What is accessed at once, of so many bytes.
template <int bytes> struct word_of;
template <> struct word_of<16> { using type = uint4; };
template <> struct word_of<8> { using type = uint2; };
template <> struct word_of<4> { using type = uint32_t; };
template <> struct word_of<2> { using type = uint16_t; };

template <typename T, int n> struct pack_words {
  static constexpr int bytes = n * static_cast<int>(sizeof(T)), of_word = bytes < 16 ? bytes : 16,
                       count = bytes / of_word;
  using type = typename word_of<of_word>::type;
};

template <typename Vector, typename T> __device__ inline Vector vector_at(const T *address) {
  return *reinterpret_cast<const Vector *>(address);
}
template <typename Vector, typename T> __device__ inline void set_vector(T *address, Vector value) {
  *reinterpret_cast<Vector *>(address) = value;
}

template <int n, typename T> __device__ inline pack<T, n> load_pack(const T *address) {
  using words = pack_words<T, n>;
  pack<T, n> v;
#pragma unroll
  for (int i = 0; i < words::count; ++i) {
    const auto word = reinterpret_cast<const typename words::type *>(address)[i];
    memcpy(reinterpret_cast<char *>(&v) + i * words::of_word, &word, words::of_word);
  }
  return v;
}

template <int n, typename T> __device__ inline void store_pack(T *address, const pack<T, n> &v) {
  using words = pack_words<T, n>;
#pragma unroll
  for (int i = 0; i < words::count; ++i) {
    typename words::type word;
    memcpy(static_cast<void *>(&word), reinterpret_cast<const char *>(&v) + i * words::of_word,
           words::of_word);
    reinterpret_cast<typename words::type *>(address)[i] = word;
  }
}

// The first `count` of them, at least one: a row's end. The others are not accessed.
template <int n, typename T> __device__ inline pack<T, n> load_part(int count, const T *address) {
  if (count >= n)
    return load_pack<n>(address);
  pack<T, n> v = {};
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < count)
      v[i] = address[i];
  return v;
}
template <int n, typename T>
__device__ inline void store_part(int count, T *address, const pack<T, n> &v) {
  if (count >= n)
    return store_pack<n>(address, v);
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (i < count)
      address[i] = v[i];
}

} // namespace trainc
