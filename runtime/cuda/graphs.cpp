// SPDX-License-Identifier: Apache-2.0
//
// Recording and replaying.
#include "runtime/cuda/graphs.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

cudaGraphExec_t record(const std::function<void()> &work) {
  cudaStream_t stream = compute_stream();
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t graph = nullptr;
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

void graphs::run(size_t number, const std::function<void()> &work) {
  piece &own = pieces_[number];
  if (!own.was_done) {
    work();
    own.was_done = true;
    return;
  }
  if (!own.recorded)
    own.recorded = record(work);
  check_cuda(cudaGraphLaunch(own.recorded, compute_stream()), "queueing a recorded step");
}

graphs::~graphs() {
  for (const piece &each : pieces_)
    if (each.recorded)
      cudaGraphExecDestroy(each.recorded);
}

} // namespace trainc
