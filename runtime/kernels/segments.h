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

} // namespace trainc
