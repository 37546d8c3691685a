// SPDX-License-Identifier: Apache-2.0
//
// nn.lstm and its gradient (dialects/nn/ops/lstm.td), with tensors as recurrence.h says.
#pragma once

#include "runtime/kernels/recurrence.h"

namespace trainc {

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DECLARE_LSTM(T)                                                                            \
  void lstm(RECURRENCE, bool coupled, const T *r, const T *bias, const T *peepholes, const T *h,   \
            const T *c, const int64_t *lengths, T *states, T *last_cell, T *cells, T *gates,       \
            char *scratch);                                                                        \
  void lstm_gradient(RECURRENCE, bool coupled, const T *r, const T *peepholes,                     \
                     const int64_t *lengths, const T *cells, const T *dstates,                     \
                     const T *dlast_cell, T *gates, T *dh, T *dc, char *scratch)

DECLARE_LSTM(float);
DECLARE_LSTM(double);

// The functions out of a target's compute_lstm and compute_lstm_gradient.
#define DEFINE_LSTM(T)                                                                             \
  void lstm(RECURRENCE, bool coupled, const T *r, const T *bias, const T *peepholes, const T *h,   \
            const T *c, const int64_t *lengths, T *states, T *last_cell, T *cells, T *gates,       \
            char *scratch) {                                                                       \
    compute_lstm<T>(RECURRENCE_ARGUMENTS, coupled, r, h, c,                                        \
                    {bias, peepholes, lengths, states, cells, gates}, last_cell, scratch);         \
  }                                                                                                \
  void lstm_gradient(RECURRENCE, bool coupled, const T *r, const T *peepholes,                     \
                     const int64_t *lengths, const T *cells, const T *dstates,                     \
                     const T *dlast_cell, T *gates, T *dh, T *dc, char *scratch) {                 \
    compute_lstm_gradient<T>(                                                                      \
        RECURRENCE_ARGUMENTS, coupled, r,                                                          \
        {nullptr, peepholes, lengths, nullptr, const_cast<T *>(cells), gates}, dstates,            \
        dlast_cell, dh, dc, scratch);                                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)

} // namespace trainc
