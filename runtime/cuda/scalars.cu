// SPDX-License-Identifier: Apache-2.0
//
// One thread per scalar.
#include "runtime/cuda/scalars.h"

#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

__global__ void set_scalars(scalar_list list, uint64_t *workspace) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < list.count)
    workspace[list.offsets[i] / static_cast<int64_t>(sizeof(uint64_t))] = list.values[i];
}

__global__ void raise_scalar(double *scalar, const double *other) {
  if (threadIdx.x == 0 && *scalar < *other)
    *scalar = *other;
}

} // namespace

void queue_raise(char *scalar, const char *other) {
  launch("a scalar of a step", raise_scalar, {1, 1}, writes(reinterpret_cast<double *>(scalar), 1),
         reads(reinterpret_cast<const double *>(other), 1));
}

void queue_scalars(const scalar_list &list, char *workspace) {
  launch("scalars of a step", set_scalars, {1, scalar_list::capacity}, list,
         writes(reinterpret_cast<uint64_t *>(workspace), unknown_extent));
}

} // namespace trainc
