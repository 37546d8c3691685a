// SPDX-License-Identifier: Apache-2.0
//
// Counters of the process: how often memory was allocated, how much of it is
// resident.
#pragma once

#include <cstdint>

namespace trainc {

// Calls of malloc, calloc, realloc, the aligned forms and mmap so far, in this
// program and in every library it loads. Negative: not counted in this build
// (a sanitizer owns the allocator).
int64_t allocation_count();

int64_t peak_resident_bytes();

} // namespace trainc
