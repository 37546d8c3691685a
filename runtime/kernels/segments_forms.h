// SPDX-License-Identifier: Apache-2.0
//
// The functions of segments.h out of a target's templates: `find_norms`, `spread_values`,
// `find_mean_squares` and `multiply_rows`.
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
  }                                                                                                \
  void segment_mean_squares(int64_t count, int64_t size, int64_t elements, const T *x,             \
                            const int64_t *table, T *result) {                                     \
    find_mean_squares(count, size, elements, x, table, result);                                    \
  }                                                                                                \
  void segment_product(int64_t count, int64_t row_size, int64_t column_size, int64_t elements,     \
                       const T *row, const T *column, const T *least, const int64_t *table,        \
                       T *result) {                                                                \
    multiply_rows(count, row_size, column_size, elements, row, column, least, table, result);      \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define DEFINE_SEGMENTS                                                                            \
  DEFINE_SEGMENTS_OF(float)                                                                        \
  DEFINE_SEGMENTS_OF(double)
