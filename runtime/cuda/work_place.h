// SPDX-License-Identifier: Apache-2.0
//
// What functions that queue work find without being told. Each device has its own; in a program
// with several, calls for one of them begin with `work_at`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

namespace trainc {

struct product_library;
class convolution_library;

struct work_place {
  cudaStream_t stream = nullptr;             // compute_stream()
  std::shared_ptr<product_library> products; // and their plans
  std::shared_ptr<convolution_library> convolutions;
  bool planning = false;     // only_planning()
  int64_t scratch_bytes = 0; // the largest wish
  char *scratch = nullptr;
};

// That of this thread's calls.
work_place &own_work();
// Null: one that the thread always has.
void work_at(work_place *place);

} // namespace trainc
