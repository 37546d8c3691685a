// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order: gradient accumulation and all-reduce.
#pragma once

#include "runtime/program.h"

namespace trainc {

// For elements [begin, end) of f32 or f64 arrays (byte pointers to element 0):
//   total = ((initial + sources[0]) + sources[1]) + ...
// where `initial` may be null (the sum then begins with sources[0]); the total is
// written to every target. A target may be one of the sources or `initial`.
void sum_in_order(data_type type, const char *initial, char *const *sources, int source_count,
                  char *const *targets, int target_count, int64_t begin, int64_t end);

} // namespace trainc
