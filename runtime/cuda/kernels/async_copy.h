// SPDX-License-Identifier: Apache-2.0
//
// Copies from global to shared memory that go on while a thread computes (PTX's cp.async). On the
// stand-in they are done at once, which is the earliest moment that they may be.
#pragma once

#include "runtime/cuda/kernels/vector.h"

namespace trainc {

template <int bytes> struct copied_bytes;
template <> struct copied_bytes<4> { using type = uint32_t; };
template <> struct copied_bytes<8> { using type = uint2; };
template <> struct copied_bytes<16> { using type = uint4; };

// Both addresses are multiples of `bytes`. Writes zeros where not `is_inside`, and reads nothing.
template <int bytes> __device__ inline void copy_async(void *to, const void *from, bool is_inside) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int read = is_inside ? bytes : 0;
  if constexpr (bytes == 16) // past the first cache, which other copies keep
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(read)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from),
                 "n"(bytes), "r"(read)
                 : "memory");
#elif defined(__CUDA_ARCH__)
  __trap(); // programs are not compiled for less than sm_80
#else
  using vector = typename copied_bytes<bytes>::type;
  set_vector(static_cast<char *>(to),
             is_inside ? vector_at<vector>(static_cast<const char *>(from)) : vector{});
#endif
}

// What a thread has copied since its last group is a group.
__device__ inline void end_group_of_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until all but the thread's last `running` groups have arrived. Other threads see them after a
// barrier.
template <int running> __device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(running) : "memory");
#endif
}

} // namespace trainc
