// SPDX-License-Identifier: Apache-2.0
//
// Lines of narrow floats to floats and back. Where the processor has instructions for f16 they are
// used, in any build of the runtime: their bits are those of the formula.
#pragma once

#include "runtime/kernels/narrow_float.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace trainc {

template <typename From, typename To>
void convert_line(const From *from, To *to, int64_t begin, int64_t count) {
#pragma omp simd
  for (int64_t i = begin; i < count; ++i)
    to[i] = from[i];
}

template <typename From, typename To> void convert_line(const From *from, To *to, int64_t count) {
  convert_line(from, to, 0, count);
}

#ifdef __x86_64__
inline bool converts_float16() {
  static const bool does = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
  }();
  return does;
}

// Those that fill a register; returns how many.
__attribute__((target("avx,f16c"))) inline int64_t convert_registers(const float16 *from, float *to,
                                                                     int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
  return i;
}
__attribute__((target("avx,f16c"))) inline int64_t convert_registers(const float *from, float16 *to,
                                                                     int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

inline void convert_line(const float16 *from, float *to, int64_t count) {
  convert_line(from, to, converts_float16() ? convert_registers(from, to, count) : 0, count);
}
inline void convert_line(const float *from, float16 *to, int64_t count) {
  convert_line(from, to, converts_float16() ? convert_registers(from, to, count) : 0, count);
}
#endif

} // namespace trainc
