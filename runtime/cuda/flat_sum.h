// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order: gradient accumulation and all-reduce.
#pragma once

#include "runtime/program.h"

#include <cuda_runtime.h>

namespace trainc {

// What is added up, in order of ranks: this rank's elements at `own`, those of the
// others one behind the other from `received` on, `stride` elements apart.
struct summands {
  const char *initial; // before them all; may be null
  const char *own;
  const char *received;
  int64_t stride;
  int rank, ranks;
};

// Queues target[i] = ((initial[i] + rank 0's) + rank 1's) + ... for `count` elements of
// f32 or f64. The target may be `initial` or `own`. All addresses are 16-byte aligned.
void queue_flat_sum(data_type type, const summands &from, int64_t count, char *target);

// Whether the current device can run kernels of this binary: cudaSuccess or why not.
cudaError_t find_flat_sum();

} // namespace trainc
