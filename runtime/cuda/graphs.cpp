// SPDX-License-Identifier: Apache-2.0
//
// Recording and replaying.
#include "runtime/cuda/graphs.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/work_place.h"

#include <utility>

namespace trainc {
namespace {

// Work is queued on another stream for a while.
class stream_turn {
public:
  explicit stream_turn(cudaStream_t stream)
      : place_(own_work()), before_(std::exchange(place_.stream, stream)) {}
  ~stream_turn() { place_.stream = before_; }
  stream_turn(const stream_turn &) = delete;
  stream_turn &operator=(const stream_turn &) = delete;

private:
  work_place &place_;
  cudaStream_t before_;
};

cudaGraphExec_t record(const std::function<void()> &work, cudaStream_t stream) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t graph = nullptr;
  const stream_turn turn(stream);
  try {
    work();
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph)
      cudaGraphDestroy(graph);
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "recording a step");
  cudaGraphExec_t recorded = nullptr;
  cudaError_t status = cudaGraphInstantiate(&recorded, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "recording a step");
  return recorded;
}

} // namespace

void graphs::allow(size_t count) {
  pieces_.resize(count);
  check_cuda(cudaStreamCreateWithFlags(&recording_, cudaStreamNonBlocking), "making a stream");
}

void graphs::run(size_t number, const std::function<void()> &work) {
  piece &own = pieces_[number];
  if (!own.was_done) {
    work();
    own.was_done = true;
    return;
  }
  if (!own.recorded)
    own.recorded = record(work, recording_);
  check_cuda(cudaGraphLaunch(own.recorded, compute_stream()), "queueing a recorded step");
}

graphs::~graphs() {
  for (const piece &each : pieces_)
    if (each.recorded)
      cudaGraphExecDestroy(each.recorded);
  if (recording_)
    cudaStreamDestroy(recording_);
}

} // namespace trainc
