// SPDX-License-Identifier: Apache-2.0
//
// What time it is, for durations.
#pragma once

#include <ctime>

namespace trainc {

// Monotonic.
inline double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace trainc
