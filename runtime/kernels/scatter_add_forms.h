// SPDX-License-Identifier: Apache-2.0
//
// The functions of scatter_add.h out of a target's two templates: `set_zero` of a table
// and `add_rows`, which does the additions.
#pragma once

#include <cstdint>

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DEFINE_SCATTER_ADD_OF(Index, T)                                                            \
  void scatter_add(int64_t count, int64_t rows, int64_t columns, const Index *indices,             \
                   const T *updates, T *table) {                                                   \
    add_rows(count, rows, columns, indices, updates, table);                                       \
  }                                                                                                \
  void scatter_add_from_zero(int64_t count, int64_t rows, int64_t columns, const Index *indices,   \
                             const T *updates, T *table) {                                         \
    set_zero(rows, columns, table);                                                                \
    add_rows(count, rows, columns, indices, updates, table);                                       \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define DEFINE_SCATTER_ADD                                                                         \
  DEFINE_SCATTER_ADD_OF(int64_t, float)                                                            \
  DEFINE_SCATTER_ADD_OF(int64_t, double)                                                           \
  DEFINE_SCATTER_ADD_OF(int32_t, float)                                                            \
  DEFINE_SCATTER_ADD_OF(int32_t, double)
