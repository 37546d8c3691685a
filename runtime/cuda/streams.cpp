// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "runtime/cuda/streams.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/process/clock.h"

namespace trainc {
namespace {

constexpr const char *timing = "timing of steps";

cudaStream_t current = nullptr;

} // namespace

cudaStream_t compute_stream() { return current; }

streams::streams() {
  check_cuda(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), "making a stream");
  check_cuda(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking), "making a stream");
  current = compute;
}

streams::~streams() {
  current = nullptr;
  for (cudaStream_t stream : {compute, copy})
    if (stream)
      cudaStreamDestroy(stream);
}

event::event(unsigned flags) {
  check_cuda(cudaEventCreateWithFlags(&event_, flags), "making an event");
}

event::~event() {
  if (event_)
    cudaEventDestroy(event_);
}

void time_marks::record(size_t number) {
  while (events_.size() <= number)
    events_.emplace_back(cudaEventDefault);
  if (number == 0)
    began_ = seconds_now();
  check_cuda(cudaEventRecord(events_[number], compute_stream()), timing);
}

double time_marks::seconds(size_t number) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, events_.front(), events_[number]), timing);
  return began_ + 1e-3 * static_cast<double>(milliseconds);
}

} // namespace trainc
