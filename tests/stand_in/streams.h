// SPDX-License-Identifier: Apache-2.0
//
// What is after the handles of streams, events and graphs.
#pragma once

#include "operations.h"

#include <deque>
#include <memory>
#include <vector>

namespace trainc::stand_in {

// One record of an event. A wait refers to the record that was the last when it was
// queued.
struct event_state {
  bool done = false;
  vector_clock known = {};
  double seconds = 0;
  CUstream_st *stream = nullptr;
  uint64_t sequence = 0; // within its stream
};

enum class node_kind { work, record, wait, graph };

struct graph_node {
  node_kind kind;
  int branch; // 0: the stream the graph is launched on
  operation_name name;
  std::function<void()> run;
  int record;
};

struct graph_nodes {
  std::vector<graph_node> nodes;
  std::vector<int> timelines;      // one for each branch
  std::vector<int> stream_numbers; // of the captured streams, likewise
  int records = 0;
};

struct queued {
  node_kind kind = node_kind::work;
  uint64_t sequence = 0;
  vector_clock host_known = {}; // what the host had seen when it queued this
  operation_name name;
  std::function<void()> run;
  std::shared_ptr<event_state> event;
  std::shared_ptr<const graph_nodes> graph;
};

// A capture in progress: one branch for each stream that takes part.
class capture {
public:
  capture(CUstream_st &origin, cudaStreamCaptureMode mode);
  cudaError_t add_work(CUstream_st &stream, operation_name name, std::function<void()> run);
  int add_record(CUstream_st &stream);
  // The stream takes part from here on.
  cudaError_t add_wait(CUstream_st &stream, int record);
  bool forbids_unsafe_calls() const { return mode_ != cudaStreamCaptureModeRelaxed; }
  CUstream_st &origin() const { return *streams_[0]; }
  bool joined() const; // every branch's work is known to the origin
  graph_nodes take();

  bool invalid = false;
  uint64_t number; // no two captures have the same

private:
  cudaStreamCaptureMode mode_;
  graph_nodes graph_;
  std::vector<CUstream_st *> streams_;
  std::vector<std::vector<int>> known_;    // per branch: how much of each branch it follows
  std::vector<std::vector<int>> recorded_; // per record, the same
};

capture *capture_in_progress();
void invalidate_capture();

CUstream_st &default_stream();
std::vector<CUstream_st *> &all_streams(); // without the default one
CUstream_st *find_stream(cudaStream_t handle);
int new_timeline();

void queue_graph(CUstream_st &stream, std::shared_ptr<const graph_nodes> graph);
std::shared_ptr<event_state> queue_record(CUstream_st &stream);
void queue_wait(CUstream_st &stream, const std::shared_ptr<event_state> &event);
void finish_stream(CUstream_st &stream);
void finish_event(event_state &event);

} // namespace trainc::stand_in

struct CUstream_st {
  int number = 0; // for messages; 0 is the default stream
  int timeline = 0;
  bool blocking = true;
  std::deque<trainc::stand_in::queued> pending;
  uint64_t queued = 0;
  uint64_t seen_by_default = 0, seen_of_default = 0;
  trainc::stand_in::vector_clock known = {};
  trainc::stand_in::capture *capture = nullptr;
  int branch = 0;
};
struct CUevent_st {
  std::shared_ptr<trainc::stand_in::event_state> state; // null: never recorded
  uint64_t capture = 0; // number of the capture it was recorded in, 0: none
  int record = 0;
  unsigned flags = 0;
};
struct CUgraph_st {
  std::shared_ptr<const trainc::stand_in::graph_nodes> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const trainc::stand_in::graph_nodes> nodes;
};
