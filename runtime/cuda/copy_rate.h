// SPDX-License-Identifier: Apache-2.0
//
// How fast the device's memory is.
#pragma once

#include <cstdint>

namespace trainc {

// Bytes per second that copies within this memory of the device read and write, of the fastest of
// some; what was there is lost. 0 where it is too small for more than the device's caches.
double measure_copy_rate(char *memory, int64_t bytes);

} // namespace trainc
