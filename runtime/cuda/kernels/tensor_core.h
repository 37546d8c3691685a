// SPDX-License-Identifier: Apache-2.0
//
// A product of bf16 or f16 numbers by the tensor cores of a warp, summed in f32: 16 x 16 by 16 x 8,
// in the fragments of PTX's mma.m16n8k16, and loads of fragments (ldmatrix). The host compiler,
// which the stand-in uses, gets the same meaning from what the lanes tell each other in shared
// memory.
#pragma once

#include "runtime/cuda/kernels/vector.h"
#include "runtime/kernels/narrow_float.h"

#include <cuda_runtime.h>

namespace trainc {

// Of the lane with g = lane / 4 and t = lane % 4, two numbers a register, the lower one first:
//   left   rows g, g + 8, g, g + 8 at columns 2 t, 2 t, 2 t + 8, 2 t + 8
//   right  rows 2 t and 2 t + 8 of column g
//   sums   rows g, g, g + 8, g + 8 of columns 2 t, 2 t + 1, 2 t, 2 t + 1
struct left_fragment {
  uint32_t of[4];
};
struct right_fragment {
  uint32_t of[2];
};

// What lanes tell each other where there are no tensor cores.
struct warp_exchange {
#if !defined(__CUDA_ARCH__)
  left_fragment left[32];
  right_fragment right[32];
  const uint16_t *rows[32];
#endif
};

template <typename Format>
__device__ inline uint32_t pair_of(narrow_float<Format> low, narrow_float<Format> high) {
  return low.bits | static_cast<uint32_t>(high.bits) << 16;
}

// The numbers nearest to these.
template <typename T> __device__ inline uint32_t nearest_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return pair_of(static_cast<T>(low), static_cast<T>(high));
#endif
}

#if defined(__CUDA_ARCH__)
#define MULTIPLY_ADD(format)                                                                       \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." format "." format ".f32 "                  \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                        \
               : "r"(left.of[0]), "r"(left.of[1]), "r"(left.of[2]), "r"(left.of[3]),               \
                 "r"(right.of[0]), "r"(right.of[1]))
#endif

// sums += left right
template <typename T>
__device__ inline void multiply_add(const left_fragment &left, const right_fragment &right,
                                    [[maybe_unused]] warp_exchange &exchange, float (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap(); // these need sm_80; programs for them are not compiled for less
#elif defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bfloat16>)
    MULTIPLY_ADD("bf16");
  else
    MULTIPLY_ADD("f16");
#else
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  exchange.left[lane] = left;
  exchange.right[lane] = right;
  __syncwarp();
  const auto number = [](uint32_t pair, int k) {
    return static_cast<float>(
        T::of_bits(static_cast<uint16_t>(k % 2 == 0 ? pair & 0xffff : pair >> 16)));
  };
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      const int of_t = k / 2 % 4, upper = k / 8;
      const uint32_t a = exchange.left[4 * g + of_t].of[i / 2 + 2 * upper],
                     b = exchange.right[4 * (2 * t + i % 2) + of_t].of[upper];
      sums[i] += number(a, k) * number(b, k);
    }
  __syncwarp();
#endif
}
#undef MULTIPLY_ADD

// Four matrices of 8 x 8 numbers in shared memory. Lane 8 i + r gives row r of matrix i, at a
// multiple of 16 bytes; of each matrix every lane gets columns 2 t, 2 t + 1 of row g or, where it
// is transposed, rows 2 t, 2 t + 1 of column g.
template <bool is_transposed, typename T>
__device__ inline void load_matrices(const T *row, [[maybe_unused]] warp_exchange &exchange,
                                     uint32_t (&pairs)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();
#elif defined(__CUDA_ARCH__)
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (is_transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(place)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
                 : "r"(place)
                 : "memory");
#else
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  exchange.rows[lane] = &row->bits;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    const uint16_t *const *rows = exchange.rows + 8 * i;
    pairs[i] = is_transposed ? rows[2 * t][g] | static_cast<uint32_t>(rows[2 * t + 1][g]) << 16
                             : vector_at<uint32_t>(rows[g] + 2 * t);
  }
  __syncwarp();
#endif
}

} // namespace trainc
