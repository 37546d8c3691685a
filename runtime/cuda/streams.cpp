// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "runtime/cuda/streams.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

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

event::event() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
}

event::~event() {
  if (event_)
    cudaEventDestroy(event_);
}

} // namespace trainc
