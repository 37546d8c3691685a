// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order: gradient accumulation and all-reduce.
#pragma once

#include "runtime/program.h"
#include "runtime/ranks/summation_order.h"

#include <vector>

namespace trainc {

// One of the arrays that are added, a byte pointer to element 0. Once it is there, the two last
// sums are added `additions` times.
struct summand {
  const char *data;
  int additions;
};

// Adds elements [begin, end) of f32 or f64 arrays: each summand is put after the sums that wait,
// and the two last of them become one as often as it says; one is left, which is written to every
// target. A target may be one of the summands.
void sum_in_order(data_type type, const std::vector<summand> &summands, char *const *targets,
                  int target_count, int64_t begin, int64_t end);

} // namespace trainc
