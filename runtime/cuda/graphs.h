// SPDX-License-Identifier: Apache-2.0
//
// Queued work, recorded as a CUDA graph and replayed from then on: a step of several
// hundred kernels costs the host one call.
#pragma once

#include "runtime/program.h"

#include <cuda_runtime.h>

#include <functional>

namespace trainc {

class graphs {
public:
  graphs() = default;
  ~graphs();
  graphs(const graphs &) = delete;
  graphs &operator=(const graphs &) = delete;

  // Queues what `work`, an entry function, queues on the compute stream. The first time it runs as
  // it is: libraries load kernels and allocate at their first call, which a recording forbids.
  void run(entry which, const std::function<void()> &work);

private:
  bool done_once_[entry_count] = {};
  cudaGraphExec_t recorded_[entry_count] = {};
};

} // namespace trainc
