// SPDX-License-Identifier: Apache-2.0
//
// Runs a kernel: block after block, the threads of a block in turns on fibers. A
// thread that never waits for others needs no fiber of its own.
#pragma once

#include "cuda_runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::stand_in {

// The launch that is running, for the hooks.
struct launch_state {
  const kernel_call *call = nullptr;
  uintptr_t arguments = 0, argument_bytes = 0;
  bool any_read = false, any_write = false; // some argument's extent is not known
};
extern launch_state launch;
extern bool in_kernel;
// Whether accesses are the kernel's: not while a barrier or a message is at work, which
// may share inline functions of the standard library with instrumented code.
extern bool checking;
extern uintptr_t stacks_begin;
extern size_t stacks_bytes;

void run_kernel(const kernel_call &call, dim3 grid, dim3 block);

// "kernel h_ln_1, block 3, thread 17".
std::string running_thread();
// The same for another moment of the running launch; "block 3" alone where only that
// is known.
std::string thread_at(uint64_t clock, unsigned thread);

} // namespace trainc::stand_in
