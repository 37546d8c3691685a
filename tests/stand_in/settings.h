// SPDX-License-Identifier: Apache-2.0
//
// How the stand-in behaves, from the environment variable TRAINC_STAND_IN; README.md
// lists the words it knows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainc::stand_in {

enum class thread_order { forward, reverse, random };

struct settings {
  thread_order threads = thread_order::forward;
  uint64_t seed = 0;
  bool late = false; // nothing on a stream runs before the host waits for it
  int devices = 8;
  int first = 0; // of the machine's devices that this process sees
  size_t free_memory = size_t{40} << 30;
  size_t page_bytes = size_t{2} << 20; // of addresses that get memory in pages; 0: there are none
  int driver = 13000;
  int capability_major = 9, capability_minor = 0;
  bool nccl_fails = false;
  bool cublas_fails = false;
  bool no_epilogues = false; // cuBLASLt proposes nothing for a product with one
  bool no_cudnn = false;     // the library is not found
  bool cudnn_fails = false;
};

// Read once; ends the program where the variable holds a word it does not know.
const settings &options();
// Another value for the tests of the stand-in itself, before anything runs.
void set_options(const char *text);

} // namespace trainc::stand_in
