// SPDX-License-Identifier: Apache-2.0
//
// The streams of this process: work of the entry functions is queued on one,
// copies of batches on the other. One pair exists at a time; `compute_stream` of
// runtime/cuda/launch.h is its first.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <deque>

namespace trainc {

class streams {
public:
  streams(); // on the device that was chosen before
  ~streams();
  streams(const streams &) = delete;
  streams &operator=(const streams &) = delete;

  cudaStream_t compute = nullptr, copy = nullptr;
};

// An event that orders streams; it measures nothing, unless its flags say so.
class event {
public:
  explicit event(unsigned flags = cudaEventDisableTiming);
  ~event();
  event(const event &) = delete;
  event &operator=(const event &) = delete;
  operator cudaEvent_t() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

// Notes when the compute stream gets somewhere, for as many places as there are numbers.
class time_marks {
public:
  // With 0 the stream has nothing to do.
  void record(size_t number);
  // By the clock of seconds_now(), once the stream has got there.
  double seconds(size_t number) const;

private:
  std::deque<event> events_;
  double began_ = 0; // when the first was recorded
};

} // namespace trainc
