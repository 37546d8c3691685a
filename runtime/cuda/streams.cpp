// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "runtime/cuda/streams.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/process/clock.h"

#include <utility>

namespace trainc {
namespace {

constexpr const char *timing = "timing of steps";

thread_local work_place of_thread;
thread_local work_place *chosen_place = nullptr;

cudaStream_t new_stream(unsigned flags) {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, flags), "making a stream");
  return stream;
}

} // namespace

work_place &own_work() { return chosen_place ? *chosen_place : of_thread; }
void work_at(work_place *place) { chosen_place = place; }

cudaStream_t compute_stream() { return own_work().stream; }

streams::streams(work_place &place)
    : compute(new_stream(cudaStreamNonBlocking)), copy(new_stream(cudaStreamNonBlocking)),
      place_(place) {
  place_.stream = compute;
}

streams::streams(work_place &place, cudaStream_t of_program)
    : compute(of_program ? of_program : new_stream(cudaStreamDefault)), place_(place),
      is_of_program_(of_program != nullptr) {
  place_.stream = compute;
}

streams::~streams() {
  place_.stream = nullptr;
  if (!is_of_program_)
    cudaStreamDestroy(compute);
  if (copy)
    cudaStreamDestroy(copy);
}

stream_turn::stream_turn(cudaStream_t stream)
    : place_(own_work()), before_(std::exchange(place_.stream, stream)) {}

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
