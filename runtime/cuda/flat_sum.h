// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order: gradient accumulation and all-reduce.
#pragma once

#include "runtime/program.h"
#include "runtime/ranks/summation_order.h"

#include <cuda_runtime.h>

namespace trainc {

// An array that is added, and how often the two last sums are added once it is there.
struct summand {
  int32_t array; // number of an accumulator or a received one; -1: the gradients
  int32_t additions;
  enum { of_accumulators, of_received } kind;
};

// Arrays of one type. All addresses and strides are multiples of 16 bytes.
struct summand_arrays {
  const char *gradients;
  const char *accumulators; // one after the other, accumulator_stride elements apart
  int64_t accumulator_stride;
  const char *received; // likewise
  int64_t received_stride;
};

// A list of summands in the device's memory.
struct summand_list {
  const summand *first; // on the device
  int count;
  int accumulators, received; // how many arrays of each there are
};

// Queues the sum of `count` elements of f32 or f64: each summand is put after the sums that wait,
// and the two last of them become one as often as it says; one is left. The target may be one of
// the arrays.
void queue_flat_sum(data_type type, const summand_arrays &arrays, const summand_list &list,
                    int64_t count, char *target);

// Whether the current device can run kernels of this binary: cudaSuccess or why not.
cudaError_t find_flat_sum();

} // namespace trainc
