// SPDX-License-Identifier: Apache-2.0
//
// Parts of a flat array: segment s is [segments[2 s], segments[2 s + 1]). Segments ascend and
// do not overlap.
#pragma once

#include <cstdint>

namespace trainc {

// norms[s] is the root of the sum of squares of segment s of x, which has `elements` elements.
// The sum is accumulated in f64, in an order that depends on the segment's size and on `pieces`
// alone: each segment is cut into so many. `scratch` holds count * pieces doubles.
void segment_norms(int64_t count, int64_t pieces, int64_t elements, const float *x,
                   const int64_t *segments, double *norms, char *scratch);
void segment_norms(int64_t count, int64_t pieces, int64_t elements, const double *x,
                   const int64_t *segments, double *norms, char *scratch);

// Writes values[s] to the elements of segment s and 0 to those between segments.
void segment_broadcast(int64_t count, int64_t elements, const float *values,
                       const int64_t *segments, float *result);
void segment_broadcast(int64_t count, int64_t elements, const double *values,
                       const int64_t *segments, double *result);

// Each of the table's `count` rows is a part: from, to, outer, kept, kept_stride, reduced,
// reduced_stride. result[to + o kept + i] is the mean over k of the squares of x[from + o kept
// reduced + i kept_stride + k reduced_stride], summed in f64 in an order that depends on the part's
// sizes alone; one of the strides is 1. x has `size` elements, the result `elements`; what no part
// writes is 0.
constexpr int64_t mean_squares_columns = 7;
void segment_mean_squares(int64_t count, int64_t size, int64_t elements, const float *x,
                          const int64_t *table, float *result);
void segment_mean_squares(int64_t count, int64_t size, int64_t elements, const double *x,
                          const int64_t *table, double *result);

// Each of the table's `count` rows is a part: to, from_rows, from_columns, outer, rows, columns.
// result[to + (o rows + r) columns + c] is row[from_rows + o rows + r] times
// column[from_columns + o columns + c] over the mean of row[from_rows + o rows] and the following,
// or over `least` where that is more. Of a part with from_columns -1, rows are copied. What no part
// writes is 0.
constexpr int64_t product_columns = 6;
void segment_product(int64_t count, int64_t row_size, int64_t column_size, int64_t elements,
                     const float *row, const float *column, const float *least,
                     const int64_t *table, float *result);
void segment_product(int64_t count, int64_t row_size, int64_t column_size, int64_t elements,
                     const double *row, const double *column, const double *least,
                     const int64_t *table, double *result);

} // namespace trainc
