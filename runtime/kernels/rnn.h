// SPDX-License-Identifier: Apache-2.0
//
// nn.rnn and its gradient (dialects/nn/ops/rnn.td), with tensors as recurrence.h says.
#pragma once

#include "runtime/kernels/recurrence.h"

namespace trainc {

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DECLARE_RNN(T)                                                                             \
  void rnn(RECURRENCE, const T *gates, const T *r, const T *bias, const T *h,                      \
           const int64_t *lengths, T *states, char *scratch);                                      \
  void rnn_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,               \
                    const T *dstates, T *dgates, T *dh, char *scratch)

DECLARE_RNN(float);
DECLARE_RNN(double);

// The functions out of a target's compute_rnn and compute_rnn_gradient.
#define DEFINE_RNN(T)                                                                              \
  void rnn(RECURRENCE, const T *gates, const T *r, const T *bias, const T *h,                      \
           const int64_t *lengths, T *states, char *scratch) {                                     \
    compute_rnn<T>(RECURRENCE_ARGUMENTS, gates, r, bias, h, lengths, states, scratch);             \
  }                                                                                                \
  void rnn_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,               \
                    const T *dstates, T *dgates, T *dh, char *scratch) {                           \
    compute_rnn_gradient<T>(RECURRENCE_ARGUMENTS, r, lengths, states, dstates, dgates, dh,         \
                            scratch);                                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)

} // namespace trainc
