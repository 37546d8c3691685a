// SPDX-License-Identifier: Apache-2.0
//
// nn.gru and its gradient (dialects/nn/ops/gru.td), with tensors as recurrence.h says.
#pragma once

#include "runtime/kernels/recurrence.h"

namespace trainc {

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DECLARE_GRU(T)                                                                             \
  void gru(RECURRENCE, bool linear_before_reset, const T *r, const T *bias, const T *h,            \
           const int64_t *lengths, T *states, T *gates, T *candidates, char *scratch);             \
  void gru_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,               \
                    const T *dstates, T *gates, T *dh, char *scratch);                             \
  void linear_gru_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,        \
                           const T *dstates, T *gates, T *dh, T *candidates, char *scratch)

DECLARE_GRU(float);
DECLARE_GRU(double);

// The functions out of a target's compute_gru and compute_gru_gradient.
#define DEFINE_GRU(T)                                                                              \
  void gru(RECURRENCE, bool linear_before_reset, const T *r, const T *bias, const T *h,            \
           const int64_t *lengths, T *states, T *gates, T *candidates, char *scratch) {            \
    compute_gru<T>(RECURRENCE_ARGUMENTS, linear_before_reset, r, h,                                \
                   {bias, lengths, states, gates, candidates}, scratch);                           \
  }                                                                                                \
  void gru_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,               \
                    const T *dstates, T *gates, T *dh, char *scratch) {                            \
    compute_gru_gradient<T>(RECURRENCE_ARGUMENTS, r,                                               \
                            {nullptr, lengths, const_cast<T *>(states), gates, nullptr}, dstates,  \
                            dh, scratch);                                                          \
  }                                                                                                \
  void linear_gru_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,        \
                           const T *dstates, T *gates, T *dh, T *candidates, char *scratch) {      \
    compute_gru_gradient<T>(RECURRENCE_ARGUMENTS, r,                                               \
                            {nullptr, lengths, const_cast<T *>(states), gates, candidates},        \
                            dstates, dh, scratch);                                                 \
  }
// NOLINTEND(bugprone-macro-parentheses)

} // namespace trainc
