// SPDX-License-Identifier: Apache-2.0
//
// Recording and replaying.
#include "runtime/cuda/graphs.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/streams.h"

namespace trainc {

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
  if (own.parts.empty())
    record(own, work);
  for (const part &each : own.parts) {
    check_cuda(cudaGraphLaunch(each.recorded, compute_stream()), "queueing a recorded step");
    if (each.then)
      each.then();
  }
}

void graphs::call_between(const std::function<void()> &aside) {
  if (!recorded_now_)
    return aside();
  end_part(aside);
  begin_part();
}

void graphs::record(piece &own, const std::function<void()> &work) {
  const stream_turn turn(recording_);
  recorded_now_ = &own;
  begin_part();
  try {
    work();
    end_part({});
  } catch (...) {
    recorded_now_ = nullptr;
    forget(own);
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(recording_, &graph) == cudaSuccess && graph)
      cudaGraphDestroy(graph);
    throw;
  }
  recorded_now_ = nullptr;
}

void graphs::begin_part() {
  check_cuda(cudaStreamBeginCapture(recording_, cudaStreamCaptureModeThreadLocal),
             "recording a step");
}

void graphs::end_part(const std::function<void()> &then) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(recording_, &graph), "recording a step");
  cudaGraphExec_t recorded = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&recorded, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "recording a step");
  recorded_now_->parts.push_back({recorded, then});
}

void graphs::forget(piece &own) {
  for (const part &each : own.parts)
    cudaGraphExecDestroy(each.recorded);
  own.parts.clear();
}

graphs::~graphs() {
  for (piece &each : pieces_)
    forget(each);
  if (recording_)
    cudaStreamDestroy(recording_);
}

} // namespace trainc
