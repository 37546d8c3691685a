// SPDX-License-Identifier: Apache-2.0
//
// Memory for what a library allocates and frees again within one call. oneDNN's
// matrix product takes a packing buffer per call; from malloc each of them would
// be mapped, faulted in and unmapped, thousands of times per step. While a scope
// is open on a thread, that thread's allocations come from blocks that are kept
// for the next call, so a step allocates nothing.
#pragma once

#include <cstddef>

namespace trainc {

class library_scratch_scope {
public:
  library_scratch_scope();
  ~library_scratch_scope();
  library_scratch_scope(const library_scratch_scope &) = delete;
  library_scratch_scope &operator=(const library_scratch_scope &) = delete;
};

// For the allocation functions (statistics.cpp). `take` returns null where no
// scope is open or the reserve is spent; `is_new` tells whether a block was made.
void *take_library_scratch(size_t size, size_t alignment, bool &is_new);
// False where the memory is not scratch.
bool give_back_library_scratch(void *memory);
// Bytes usable at `memory`; 0 where it is not scratch.
size_t library_scratch_size(const void *memory);

} // namespace trainc
