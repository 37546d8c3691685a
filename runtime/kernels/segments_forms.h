// SPDX-License-Identifier: Apache-2.0
//
// The functions of segments.h out of a target's two templates, `find_norms` and `spread_values`.
#pragma once

#include <cstdint>

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define DEFINE_SEGMENTS_OF(T)                                                                      \
  void segment_norms(int64_t count, int64_t pieces, int64_t elements, const T *x,                  \
                     const int64_t *segments, double *norms, char *scratch) {                      \
    find_norms(count, pieces, elements, x, segments, norms, reinterpret_cast<double *>(scratch));  \
  }                                                                                                \
  void segment_broadcast(int64_t count, int64_t elements, const T *values,                         \
                         const int64_t *segments, T *result) {                                     \
    spread_values(count, elements, values, segments, result);                                      \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define DEFINE_SEGMENTS                                                                            \
  DEFINE_SEGMENTS_OF(float)                                                                        \
  DEFINE_SEGMENTS_OF(double)
