// SPDX-License-Identifier: Apache-2.0
#include "operations.h"
#include "report.h"
#include "settings.h"
#include "streams.h"

#include <algorithm>
#include <deque>

namespace trainc::stand_in {

namespace {

void join(vector_clock &into, const vector_clock &other) {
  for (int i = 0; i < timelines; ++i)
    into[i] = std::max(into[i], other[i]);
}

struct logged {
  uint64_t start;
  operation_name name;
  int stream_number;
};
std::deque<logged> history; // of what ran, for messages
constexpr size_t longest_history = 1 << 18;

vector_clock host_known = {};

std::string described(const logged &one) {
  std::string text = one.name.kernel != nullptr ? "kernel " + function_name(one.name.kernel)
                                                : std::string(one.name.text);
  if (one.name.bytes != 0)
    text += " of " + std::to_string(one.name.bytes) + " bytes";
  return text + " on " +
         (one.stream_number == 0 ? "the default stream"
                                 : "stream " + std::to_string(one.stream_number));
}

int64_t executed = 0; // operations so far

// Runs one operation as part of a timeline, which knows of it afterwards.
void execute(const operation_name &name, const std::function<void()> &run, int timeline,
             int stream_number, vector_clock &known) {
  current.timeline = timeline;
  tick();
  current.operation_start = current.block_start = current.barrier = current.clock;
  current.warp_sync = current.clock;
  current.known = known;
  set_thread(0);
  history.push_back({current.clock, name, stream_number});
  if (history.size() > longest_history)
    history.pop_front();
  run();
  known[timeline] = current.clock;
  ++executed;
}

void record(event_state &state, const vector_clock &known) {
  state.done = true;
  state.known = known;
  // Of what is measured the same is fastest every time: each operation takes a microsecond.
  state.seconds = 1e-6 * static_cast<double>(executed);
}

void launch_graph(const graph_nodes &graph, CUstream_st &stream) {
  std::vector<vector_clock> known(graph.timelines.size(), stream.known);
  std::vector<vector_clock> recorded(graph.records);
  for (const graph_node &node : graph.nodes) {
    vector_clock &own = known[node.branch];
    const int timeline = node.branch == 0 ? stream.timeline : graph.timelines[node.branch];
    if (node.kind == node_kind::work)
      execute(node.name, node.run, timeline, graph.stream_numbers[node.branch], own);
    else if (node.kind == node_kind::record)
      recorded[node.record] = own;
    else
      join(own, recorded[node.record]);
  }
  for (const vector_clock &branch : known)
    join(stream.known, branch);
}

void run_until(CUstream_st &stream, uint64_t last);

void run_one(CUstream_st &stream, const queued &one) {
  join(stream.known, one.host_known);
  switch (one.kind) {
  case node_kind::work:
    execute(one.name, one.run, stream.timeline, stream.number, stream.known);
    break;
  case node_kind::graph:
    launch_graph(*one.graph, stream);
    break;
  case node_kind::record:
    record(*one.event, stream.known);
    break;
  case node_kind::wait:
    if (!one.event->done)
      run_until(*one.event->stream, one.event->sequence);
    join(stream.known, one.event->known);
    break;
  }
}

void run_until(CUstream_st &stream, uint64_t last) {
  while (!stream.pending.empty() && stream.pending.front().sequence <= last) {
    const queued one = std::move(stream.pending.front());
    stream.pending.pop_front();
    run_one(stream, one);
  }
}

uint64_t push(CUstream_st &stream, queued one) {
  one.sequence = ++stream.queued;
  one.host_known = host_known;
  const uint64_t sequence = one.sequence;
  stream.pending.push_back(std::move(one));
  return sequence;
}

std::shared_ptr<event_state> push_record(CUstream_st &stream) {
  queued one;
  one.kind = node_kind::record;
  one.event = std::make_shared<event_state>();
  one.event->stream = &stream;
  const auto event = one.event;
  event->sequence = stream.queued + 1;
  push(stream, std::move(one));
  return event;
}

void push_wait(CUstream_st &stream, const std::shared_ptr<event_state> &event) {
  queued one;
  one.kind = node_kind::wait;
  one.event = event;
  push(stream, std::move(one));
}

// The default stream waits for all blocking streams, and they for it.
void order_with_default(CUstream_st &stream) {
  CUstream_st &common = default_stream();
  if (&stream == &common) {
    for (CUstream_st *other : all_streams())
      if (other->blocking && other->queued != other->seen_by_default) {
        push_wait(stream, push_record(*other));
        other->seen_by_default = other->queued;
      }
  } else if (stream.blocking && common.queued != stream.seen_of_default) {
    const auto event = push_record(common);
    stream.seen_of_default = common.queued;
    push_wait(stream, event);
  }
}

void run_unless_late(CUstream_st &stream) {
  if (!options().late)
    run_until(stream, stream.queued);
}

} // namespace

// ---- operations

cudaError_t queue(cudaStream_t handle, operation_name name, std::function<void()> run) {
  CUstream_st *stream = find_stream(handle);
  if (stream == nullptr)
    return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr)
    return stream->capture->add_work(*stream, name, std::move(run));
  if (stream == &default_stream() && capture_in_progress())
    return invalidate_capture(), cudaErrorStreamCaptureImplicit;
  order_with_default(*stream);
  queued one;
  one.name = name;
  one.run = std::move(run);
  push(*stream, std::move(one));
  run_unless_late(*stream);
  return cudaSuccess;
}

void queue_graph(CUstream_st &stream, std::shared_ptr<const graph_nodes> graph) {
  order_with_default(stream);
  queued one;
  one.kind = node_kind::graph;
  one.graph = std::move(graph);
  push(stream, std::move(one));
  run_unless_late(stream);
}

std::shared_ptr<event_state> queue_record(CUstream_st &stream) {
  order_with_default(stream);
  const auto event = push_record(stream);
  run_unless_late(stream);
  return event;
}

void queue_wait(CUstream_st &stream, const std::shared_ptr<event_state> &event) {
  push_wait(stream, event);
  run_unless_late(stream);
}

void finish_stream(CUstream_st &stream) {
  run_until(stream, stream.queued);
  join(host_known, stream.known);
}

void finish_stream(cudaStream_t handle) {
  if (CUstream_st *stream = find_stream(handle))
    finish_stream(*stream);
}

void finish_event(event_state &event) {
  if (!event.done)
    run_until(*event.stream, event.sequence);
  join(host_known, event.known);
}

void run_stream(cudaStream_t handle) {
  if (CUstream_st *stream = find_stream(handle))
    run_until(*stream, stream->queued);
}

void finish_everything() {
  finish_stream(default_stream());
  for (CUstream_st *stream : all_streams())
    finish_stream(*stream);
}

// ---- names

std::string operation_at(uint64_t clock) {
  const auto next =
      std::upper_bound(history.begin(), history.end(), clock,
                       [](uint64_t value, const logged &one) { return value < one.start; });
  return next == history.begin() ? "an operation long ago" : described(*std::prev(next));
}

std::string current_operation() { return history.empty() ? "the host" : described(history.back()); }

} // namespace trainc::stand_in
