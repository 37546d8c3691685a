// SPDX-License-Identifier: Apache-2.0
//
// The streams of a device: work of the entry functions is queued on one, copies of batches on the
// other. `compute_stream` of runtime/cuda/launch.h is the first one.
#pragma once

#include "runtime/cuda/work_place.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <deque>

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

// Work is queued on another stream for a while.
class stream_turn {
public:
  explicit stream_turn(cudaStream_t stream);
  ~stream_turn() { place_.stream = before_; }
  stream_turn(const stream_turn &) = delete;
  stream_turn &operator=(const stream_turn &) = delete;

private:
  work_place &place_;
  cudaStream_t before_;
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
