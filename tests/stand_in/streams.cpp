// SPDX-License-Identifier: Apache-2.0
#include "streams.h"
#include "errors.h"

#include <algorithm>

namespace trainc::stand_in {

namespace {

std::unique_ptr<capture> &active_capture() {
  static std::unique_ptr<capture> value;
  return value;
}
int streams_so_far = 0;
int timelines_so_far = 0;
uint64_t captures_so_far = 0;

} // namespace

CUstream_st &default_stream() {
  static CUstream_st stream;
  return stream;
}

std::vector<CUstream_st *> &all_streams() {
  static std::vector<CUstream_st *> list;
  return list;
}

CUstream_st *find_stream(cudaStream_t handle) {
  if (handle == nullptr)
    return &default_stream();
  const auto &list = all_streams();
  return std::find(list.begin(), list.end(), handle) == list.end() ? nullptr : handle;
}

// More streams than timelines share one: some missing waits between those are then
// not seen, and nothing wrong is said.
int new_timeline() { return 1 + timelines_so_far++ % (timelines - 1); }

// ---- capture

capture *capture_in_progress() { return active_capture().get(); }

void invalidate_capture() {
  if (active_capture() != nullptr)
    active_capture()->invalid = true;
}

bool forbidden_in_capture() {
  if (active_capture() == nullptr || !active_capture()->forbids_unsafe_calls())
    return false;
  active_capture()->invalid = true;
  return true;
}

capture::capture(CUstream_st &origin, cudaStreamCaptureMode mode)
    : number(++captures_so_far), mode_(mode) {
  streams_ = {&origin};
  known_ = {{0}};
  graph_.timelines = {0};
  graph_.stream_numbers = {origin.number};
  origin.capture = this;
  origin.branch = 0;
}

cudaError_t capture::add_work(CUstream_st &stream, operation_name name, std::function<void()> run) {
  if (invalid)
    return cudaErrorStreamCaptureInvalidated;
  graph_.nodes.push_back({node_kind::work, stream.branch, name, std::move(run), 0});
  ++known_[stream.branch][stream.branch];
  return cudaSuccess;
}

int capture::add_record(CUstream_st &stream) {
  graph_.nodes.push_back({node_kind::record, stream.branch, {}, nullptr, graph_.records});
  recorded_.push_back(known_[stream.branch]);
  return graph_.records++;
}

cudaError_t capture::add_wait(CUstream_st &stream, int record) {
  if (stream.capture == nullptr) {
    stream.capture = this;
    stream.branch = static_cast<int>(streams_.size());
    streams_.push_back(&stream);
    graph_.timelines.push_back(new_timeline());
    graph_.stream_numbers.push_back(stream.number);
    for (std::vector<int> &counts : known_)
      counts.push_back(0);
    known_.emplace_back(streams_.size(), 0);
  }
  graph_.nodes.push_back({node_kind::wait, stream.branch, {}, nullptr, record});
  std::vector<int> &known = known_[stream.branch];
  for (size_t i = 0; i < recorded_[record].size(); ++i)
    known[i] = std::max(known[i], recorded_[record][i]);
  return cudaSuccess;
}

bool capture::joined() const {
  for (size_t branch = 1; branch < known_.size(); ++branch)
    if (known_[0][branch] != known_[branch][branch])
      return false;
  return true;
}

graph_nodes capture::take() {
  for (CUstream_st *stream : streams_)
    stream->capture = nullptr;
  return std::move(graph_);
}

} // namespace trainc::stand_in

using namespace trainc::stand_in;

// ---- streams

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  if (stream == nullptr || flags > cudaStreamNonBlocking)
    return returned(cudaErrorInvalidValue);
  auto *created = new CUstream_st;
  created->number = ++streams_so_far;
  created->timeline = new_timeline();
  created->blocking = flags != cudaStreamNonBlocking;
  all_streams().push_back(created);
  *stream = created;
  return cudaSuccess;
}

// As of a GPU; here streams take their turns whatever theirs is.
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

// What is queued still runs; the handle is gone. Kept, since events may refer to it.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr || handle == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  finish_stream(*stream);
  auto &list = all_streams();
  list.erase(std::find(list.begin(), list.end(), stream));
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr || forbidden_in_capture()) {
    invalidate_capture();
    return returned(cudaErrorStreamCaptureUnsupported);
  }
  finish_stream(*stream);
  return cudaSuccess;
}

// Late streams make progress when asked, so that a loop that asks ends.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    invalidate_capture();
    return returned(cudaErrorStreamCaptureUnsupported);
  }
  const bool done = stream->pending.empty();
  finish_stream(*stream);
  return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr || event == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (flags != 0)
    return returned(cudaErrorInvalidValue);
  capture *active = capture_in_progress();
  if (event->capture != 0 && active != nullptr && event->capture == active->number)
    return returned(active->add_wait(*stream, event->record));
  if (stream->capture != nullptr) {
    invalidate_capture();
    return returned(cudaErrorStreamCaptureIsolation);
  }
  if (event->capture != 0)
    return returned(cudaErrorCapturedEvent);
  if (event->state != nullptr)
    queue_wait(*stream, event->state);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (handle == nullptr)
    return returned(cudaErrorStreamCaptureUnsupported);
  if (capture_in_progress() != nullptr)
    return returned(cudaErrorIllegalState);
  active_capture() = std::make_unique<capture>(*stream, mode);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr || graph == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr)
    return returned(cudaErrorIllegalState);
  *graph = nullptr;
  const std::unique_ptr<capture> ended = std::move(active_capture());
  const bool joined = ended->joined(), origin = &ended->origin() == stream;
  graph_nodes nodes = ended->take();
  if (!origin)
    return returned(cudaErrorStreamCaptureUnmatched);
  if (ended->invalid)
    return returned(cudaErrorStreamCaptureInvalidated);
  if (!joined)
    return returned(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::make_shared<graph_nodes>(std::move(nodes))};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (const cudaError_t error = device_problem(); error != cudaSuccess)
    return returned(error);
  *event = new CUevent_st;
  (*event)->flags = flags;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr || event == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    event->capture = stream->capture->number;
    event->record = stream->capture->add_record(*stream);
    return cudaSuccess;
  }
  event->capture = 0;
  event->state = queue_record(*stream);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (event->capture != 0)
    return returned(cudaErrorCapturedEvent);
  if (event->state != nullptr)
    finish_event(*event->state);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (event->capture != 0)
    return returned(cudaErrorCapturedEvent);
  if (event->state == nullptr)
    return cudaSuccess;
  const bool done = event->state->done;
  finish_event(*event->state);
  return done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const cudaEvent_t event : {start, end}) {
    if (event == nullptr || event->state == nullptr || (event->flags & cudaEventDisableTiming))
      return returned(cudaErrorInvalidResourceHandle);
    if (!event->state->done)
      return returned(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>((end->state->seconds - start->state->seconds) * 1e3);
  return cudaSuccess;
}

// ---- graphs

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (executable == nullptr || graph == nullptr)
    return returned(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return returned(executable == nullptr || find_stream(stream) == nullptr ? cudaErrorInvalidValue
                                                                          : cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  CUstream_st *stream = find_stream(handle);
  if (executable == nullptr || stream == nullptr)
    return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr)
    return returned(cudaErrorStreamCaptureUnsupported);
  queue_graph(*stream, executable->nodes);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
}
