// SPDX-License-Identifier: Apache-2.0
//
// Adds rows into a table by index.
#pragma once

#include <cstdint>

namespace trainc {

// table[indices[i]] += updates[i] for i = 0 .. count - 1 in this order. The table has
// `rows` rows of `columns` contiguous elements. Indexes outside [0, rows) are skipped.
void scatter_add(int64_t count, int64_t rows, int64_t columns, const int64_t *indices,
                 const float *updates, float *table);
void scatter_add(int64_t count, int64_t rows, int64_t columns, const int64_t *indices,
                 const double *updates, double *table);
void scatter_add(int64_t count, int64_t rows, int64_t columns, const int32_t *indices,
                 const float *updates, float *table);
void scatter_add(int64_t count, int64_t rows, int64_t columns, const int32_t *indices,
                 const double *updates, double *table);

// Adds to a table of zeros, which it writes first.
void scatter_add_from_zero(int64_t count, int64_t rows, int64_t columns, const int64_t *indices,
                           const float *updates, float *table);
void scatter_add_from_zero(int64_t count, int64_t rows, int64_t columns, const int64_t *indices,
                           const double *updates, double *table);
void scatter_add_from_zero(int64_t count, int64_t rows, int64_t columns, const int32_t *indices,
                           const float *updates, float *table);
void scatter_add_from_zero(int64_t count, int64_t rows, int64_t columns, const int32_t *indices,
                           const double *updates, double *table);

} // namespace trainc
