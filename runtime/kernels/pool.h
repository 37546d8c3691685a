// SPDX-License-Identifier: Apache-2.0
//
// Pools over one to three dimensions of space, and their gradients.
#pragma once

#include "runtime/kernels/space.h"

#include <cstdint>

namespace trainc {

// Where the windows of each of `planes` planes of space lie: point p of the result and tap k of the
// kernel meet at p * stride + k * dilation - before of the input. Taps outside the input do not
// count.
struct pool_windows {
  int64_t planes;
  space_sizes input, kernel, result, stride, dilation, before;
};

#define POOL_WINDOWS                                                                               \
  int64_t planes, const space_sizes &input, const space_sizes &kernel, const space_sizes &result,  \
      const space_sizes &stride, const space_sizes &dilation, const space_sizes &before

// Tensors are contiguous, plane after plane. Every sum has one order that depends on sizes
// alone, not on the number of threads.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DECLARE_POOLS(T)                                                                           \
  /* y: the largest element of each window; a window has one. What is not a number is larger. */   \
  void max_pool(POOL_WINDOWS, const T *x, T *y);                                                   \
  /* picked: of `values`, what stands where the window's largest element of x is; of equal ones    \
     the first, of several that are not numbers the last. */                                       \
  void max_pool_of(POOL_WINDOWS, const T *x, const T *values, T *picked);                          \
  void max_pool_of(POOL_WINDOWS, const T *x, const int64_t *values, int64_t *picked);              \
  /* dx: each dy added where its window's largest element of x is. */                              \
  void max_pool_gradient(POOL_WINDOWS, const T *x, const T *dy, T *dx);                            \
  void sum_pool(POOL_WINDOWS, const T *x, T *y);                                                   \
  /* dx: for each element the sum of dy over the windows that it is part of. */                    \
  void sum_pool_gradient(POOL_WINDOWS, const T *dy, T *dx)
// NOLINTEND(bugprone-macro-parentheses)

DECLARE_POOLS(float);
DECLARE_POOLS(double);

// ---- for the implementations

// The functions above out of a target's templates `pick_largest(windows, x, values, picked)`,
// `add_largest`, `add_windows` and `spread_windows`.
#define POOL_ARGUMENTS                                                                             \
  { planes, input, kernel, result, stride, dilation, before }
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DEFINE_POOLS(T)                                                                            \
  void max_pool(POOL_WINDOWS, const T *x, T *y) { pick_largest<T, T>(POOL_ARGUMENTS, x, x, y); }   \
  void max_pool_of(POOL_WINDOWS, const T *x, const T *values, T *picked) {                         \
    pick_largest<T, T>(POOL_ARGUMENTS, x, values, picked);                                         \
  }                                                                                                \
  void max_pool_of(POOL_WINDOWS, const T *x, const int64_t *values, int64_t *picked) {             \
    pick_largest<T, int64_t>(POOL_ARGUMENTS, x, values, picked);                                   \
  }                                                                                                \
  void max_pool_gradient(POOL_WINDOWS, const T *x, const T *dy, T *dx) {                           \
    add_largest<T>(POOL_ARGUMENTS, x, dy, dx);                                                     \
  }                                                                                                \
  void sum_pool(POOL_WINDOWS, const T *x, T *y) { add_windows<T>(POOL_ARGUMENTS, x, y); }          \
  void sum_pool_gradient(POOL_WINDOWS, const T *dy, T *dx) {                                       \
    spread_windows<T>(POOL_ARGUMENTS, dy, dx);                                                     \
  }
// NOLINTEND(bugprone-macro-parentheses)

} // namespace trainc
