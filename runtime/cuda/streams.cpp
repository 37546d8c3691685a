// SPDX-License-Identifier: Apache-2.0
//
// Streams and events.
#include "runtime/cuda/streams.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

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

event::event() {
  check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
}

event::~event() {
  if (event_)
    cudaEventDestroy(event_);
}

} // namespace trainc
