// SPDX-License-Identifier: Apache-2.0
//
// What CUDA gives to the code of a kernel: qualifiers, the thread's place, barriers,
// exchanges within a warp, atomic operations on integers, and the few functions that
// the host does not have. Names, signatures and meaning are CUDA's.
#pragma once

#include "stand_in/vector_types.h"

#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __constant__ const
// One section holds all arrays of all kernels: one block runs at a time, and what is
// in there counts as never written when the next block starts.
#define __shared__ static __attribute__((section("trainc_shared")))

// Constant for the thread that reads them, hence declared so: the instrumentation
// leaves constants alone. The executor writes them whenever it changes to another thread.
extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const dim3 blockDim;
extern const dim3 gridDim;
constexpr int warpSize = 32;

namespace trainc::stand_in {

// The line in the source that a thread waits at.
struct place {
  const char *file;
  int line;
};

enum class warp_operation { sync, shuffle_xor, shuffle_down, shuffle_up, shuffle_index, ballot };

void block_barrier(place where);
// Waits for all lanes of `mask`, which all must ask for the same operation. `operand`
// is the lane mask, distance or source lane of a shuffle.
uint64_t warp_exchange(warp_operation operation, unsigned mask, uint64_t value, int operand,
                       int width, place where);
// Tells the checker of an atomic read and write by the kernel's code at `code`.
void atomic_access(const void *address, unsigned bytes, const void *code);

template <typename T>
inline T exchange(warp_operation operation, unsigned mask, T value, int operand, int width,
                  place where) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = warp_exchange(operation, mask, bits, operand, width, where);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

} // namespace trainc::stand_in

inline void __syncthreads(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
  trainc::stand_in::block_barrier({file, line});
}

inline void __syncwarp(unsigned mask = 0xffffffffu, const char *file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  using namespace trainc::stand_in;
  warp_exchange(warp_operation::sync, mask, 0, 0, warpSize, {file, line});
}

#define TRAINC_SHUFFLE(name, operation, operand_type)                                              \
  template <typename T>                                                                            \
  inline T name(unsigned mask, T value, operand_type operand, int width = warpSize,                \
                const char *file = __builtin_FILE(), int line = __builtin_LINE()) {                \
    using namespace trainc::stand_in;                                                              \
    return exchange(warp_operation::operation, mask, value, static_cast<int>(operand), width,      \
                    {file, line});                                                                 \
  }
TRAINC_SHUFFLE(__shfl_sync, shuffle_index, int)
TRAINC_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)
TRAINC_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
TRAINC_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
#undef TRAINC_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate, const char *file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  using namespace trainc::stand_in;
  return static_cast<unsigned>(
      warp_exchange(warp_operation::ballot, mask, predicate != 0, 0, warpSize, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, const char *file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, const char *file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) == mask;
}
inline unsigned __activemask() { return 0xffffffffu; }

// No floating-point ones: their order is not fixed.
int atomicAdd(int *address, int value);
unsigned atomicAdd(unsigned *address, unsigned value);
unsigned long long atomicAdd(unsigned long long *address, unsigned long long value);
int atomicMin(int *address, int value);
int atomicMax(int *address, int value);
unsigned atomicMin(unsigned *address, unsigned value);
unsigned atomicMax(unsigned *address, unsigned value);
unsigned atomicOr(unsigned *address, unsigned value);
unsigned atomicAnd(unsigned *address, unsigned value);
int atomicExch(int *address, int value);
unsigned atomicExch(unsigned *address, unsigned value);
int atomicCAS(int *address, int compare, int value);
unsigned atomicCAS(unsigned *address, unsigned compare, unsigned value);

// Orders one thread's own accesses as others see them; no other thread runs meanwhile.
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T> inline T __ldg(const T *address) { return *address; }

inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
