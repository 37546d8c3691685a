// SPDX-License-Identifier: Apache-2.0
//
// 2 to the x by the unit of a GPU that has such functions: within 2 ulp of f32, and 0 for what is
// below 2^-126. For numbers that are rounded to 16 bits afterwards.
#pragma once

#include <cmath>
#include <cuda_runtime.h>

namespace trainc {

constexpr float log2_of_e = 1.44269504088896340736f;

__device__ inline float exp2_approximately(float x) {
#if defined(__CUDA_ARCH__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}

} // namespace trainc
