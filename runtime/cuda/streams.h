// SPDX-License-Identifier: Apache-2.0
//
// The streams of a device: work of the entry functions is queued on one, copies of batches on the
// other. `compute_stream` of runtime/cuda/launch.h is the first one.
#pragma once

#include "runtime/cuda/work_place.h"

#include <cuda_runtime.h>

namespace trainc {

class streams {
public:
  explicit streams(work_place &place = own_work()); // on the device that was chosen before
  // In a program that is not ours: its stream; null: one that takes turns with CUDA's default
  // stream, on which the program queues what it names no stream for.
  streams(work_place &place, cudaStream_t of_program);
  ~streams();
  streams(const streams &) = delete;
  streams &operator=(const streams &) = delete;

  cudaStream_t compute = nullptr, copy = nullptr;

private:
  work_place &place_;
  bool is_of_program_ = false;
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
