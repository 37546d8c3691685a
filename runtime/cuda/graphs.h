// SPDX-License-Identifier: Apache-2.0
//
// Queued work, recorded as a CUDA graph and replayed from then on: a step of several
// hundred kernels costs the host one call.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

namespace trainc {

class graphs {
public:
  graphs() = default;
  ~graphs();
  graphs(const graphs &) = delete;
  graphs &operator=(const graphs &) = delete;

  // How many pieces of work there are, whose numbers are below.
  void allow(size_t count);
  // Queues what `work`, always the same of its number, queues on the compute stream. The first time
  // it runs as it is: libraries load kernels and allocate at their first call, which a recording
  // forbids.
  void run(size_t number, const std::function<void()> &work);
  // Within `work`, or without any: what `aside` queues comes between what is queued before and
  // after it, and is in no record. It is called each time.
  void call_between(const std::function<void()> &aside);

private:
  // Recorded work and what is called after it, which may be nothing.
  struct part {
    cudaGraphExec_t recorded;
    std::function<void()> then;
  };
  struct piece {
    bool was_done = false;
    std::vector<part> parts = {};
  };
  void record(piece &own, const std::function<void()> &work);
  static void forget(piece &own);
  void begin_part();
  void end_part(const std::function<void()> &then);

  std::vector<piece> pieces_;
  piece *recorded_now_ = nullptr;
  cudaStream_t recording_ = nullptr; // a program may forbid it on its own
};

} // namespace trainc
