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

} // namespace

void queue_scalars(const scalar_list &list, char *workspace) {
  launch("scalars of a step", set_scalars, {1, scalar_list::capacity}, list,
         writes(reinterpret_cast<uint64_t *>(workspace), unknown_extent));
}

} // namespace trainc
