// SPDX-License-Identifier: Apache-2.0
//
// Means of what the ranks of a step have.
#pragma once

#include <cstdint>

namespace trainc {

class rank_exchange;

// mean[i] is the mean of x[i] over all ranks, added in f64 in the order of ranks; `ranks` is how
// many they are. Where `exchange` is null this one is alone.
void mean_over_ranks(rank_exchange *exchange, int64_t count, const float *x, float *mean,
                     double *ranks);
void mean_over_ranks(rank_exchange *exchange, int64_t count, const double *x, double *mean,
                     double *ranks);

} // namespace trainc
