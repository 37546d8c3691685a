// SPDX-License-Identifier: Apache-2.0
//
// Scalars of the workspace arena, set from the host without waiting: they travel as
// arguments of a kernel, so no memory of the host has to stay as it is.
#pragma once

#include <cstdint>

namespace trainc {

struct scalar_list {
  static constexpr int capacity = 32;
  int count = 0;
  int64_t offsets[capacity]; // bytes from the workspace arena's base
  uint64_t values[capacity]; // bits
};

// Queues workspace[offset] = value for each of the list.
void queue_scalars(const scalar_list &list, char *workspace);

// Queues *scalar = max(*scalar, *other), of f64 on the device.
void queue_raise(char *scalar, const char *other);

} // namespace trainc
