// SPDX-License-Identifier: Apache-2.0
//
// The streams of this process: work of the entry functions is queued on one,
// copies of batches on the other. One pair exists at a time; `compute_stream` of
// runtime/cuda/launch.h is its first.
#pragma once

#include <cuda_runtime.h>

namespace trainc {

class streams {
public:
  streams(); // on the device that was chosen before
  ~streams();
  streams(const streams &) = delete;
  streams &operator=(const streams &) = delete;

  cudaStream_t compute = nullptr, copy = nullptr;
};

// An event that orders streams; it measures nothing.
class event {
public:
  event();
  ~event();
  event(const event &) = delete;
  event &operator=(const event &) = delete;
  operator cudaEvent_t() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

} // namespace trainc
