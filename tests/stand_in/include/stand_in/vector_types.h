// SPDX-License-Identifier: Apache-2.0
//
// CUDA's vector types. Copying one is one access of all its bytes on a device, so
// their copy operations are one access here too, and say so where the address is
// not a multiple of the type's size.
#pragma once

#include <cstdint>
#include <cstring>

namespace trainc::stand_in {
[[noreturn]] void misaligned_vector(const void *address, unsigned bytes);

template <unsigned Bytes> inline void check_alignment(const void *address) {
  if ((reinterpret_cast<uintptr_t>(address) & (Bytes - 1)) != 0) [[unlikely]]
    misaligned_vector(address, Bytes);
}
} // namespace trainc::stand_in

#define TRAINC_VECTOR_COPIES(name, bytes)                                                          \
  name(const name &other) {                                                                        \
    trainc::stand_in::check_alignment<bytes>(&other);                                              \
    __builtin_memcpy(static_cast<void *>(this), &other, bytes);                                    \
  }                                                                                                \
  name &operator=(const name &other) {                                                             \
    trainc::stand_in::check_alignment<bytes>(this);                                                \
    trainc::stand_in::check_alignment<bytes>(&other);                                              \
    __builtin_memcpy(static_cast<void *>(this), &other, bytes);                                    \
    return *this;                                                                                  \
  }

#define TRAINC_VECTOR_2(name, type)                                                                \
  struct alignas(2 * sizeof(type)) name##2 {                                                       \
    type x, y;                                                                                     \
    name##2() = default;                                                                           \
    constexpr name##2(type x, type y) : x(x), y(y) {}                                              \
    TRAINC_VECTOR_COPIES(name##2, 2 * sizeof(type))                                                \
  };                                                                                               \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }

#define TRAINC_VECTOR_4(name, type)                                                                \
  struct alignas(4 * sizeof(type)) name##4 {                                                       \
    type x, y, z, w;                                                                               \
    name##4() = default;                                                                           \
    constexpr name##4(type x, type y, type z, type w) : x(x), y(y), z(z), w(w) {}                  \
    TRAINC_VECTOR_COPIES(name##4, 4 * sizeof(type))                                                \
  };                                                                                               \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

TRAINC_VECTOR_2(char, signed char)
TRAINC_VECTOR_4(char, signed char)
TRAINC_VECTOR_2(uchar, unsigned char)
TRAINC_VECTOR_4(uchar, unsigned char)
TRAINC_VECTOR_2(short, short)
TRAINC_VECTOR_4(short, short)
TRAINC_VECTOR_2(ushort, unsigned short)
TRAINC_VECTOR_4(ushort, unsigned short)
TRAINC_VECTOR_2(int, int)
TRAINC_VECTOR_4(int, int)
TRAINC_VECTOR_2(uint, unsigned)
TRAINC_VECTOR_4(uint, unsigned)
TRAINC_VECTOR_2(long, long)
TRAINC_VECTOR_2(ulong, unsigned long)
TRAINC_VECTOR_2(longlong, long long)
TRAINC_VECTOR_2(ulonglong, unsigned long long)
TRAINC_VECTOR_2(float, float)
TRAINC_VECTOR_4(float, float)
TRAINC_VECTOR_2(double, double)

#undef TRAINC_VECTOR_2
#undef TRAINC_VECTOR_4
#undef TRAINC_VECTOR_COPIES

// Three elements are no vector access on a device: plain.
struct uint3 {
  unsigned x, y, z;
};
struct int3 {
  int x, y, z;
};
struct float3 {
  float x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
