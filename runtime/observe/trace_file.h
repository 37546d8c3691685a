// SPDX-License-Identifier: Apache-2.0
//
// What ranks did, as a file of trace events, which Perfetto and Chrome show: a process for each
// rank, in it tracks of what it computes, of its exchanges, of batches and of checkpoints.
#pragma once

#include "runtime/files/output_file.h"
#include "runtime/plan/plan.h"

#include <nlohmann/json.hpp>

namespace trainc {

// Outer ones first: each lies within one of the kind before it. The last three have tracks of their
// own.
enum class slice_kind : int32_t {
  training_step,
  action,
  plan_step,
  exchange,
  batch,
  checkpoint,
};

// Sent between ranks as it is.
struct trace_slice {
  double begin, end; // seconds since the trace began, by one clock for all ranks
  slice_kind kind;
  int32_t name;        // its number among the rank's names
  int32_t number = -1; // of the training step or the batch; in the function
  int32_t chunk = -1, micro_batch = -1, boundary = -1; // of an action; -1: none
  double waiting = 0; // seconds for other ranks, or for the batch; of an exchange those exposed
  int64_t bytes = -1; // that are read or written; -1: does not apply
};

struct rank_trace {
  int rank = 0, stage = 0, replica = 0;
  std::vector<std::string> names;
  std::vector<trace_slice> slices;
};

class trace_file {
public:
  // `product_rate`: operations per second of a large matrix product; 0: not known. Throws `failure`
  // (exit_disk), as all that follows.
  trace_file(const std::string &path, const plan &plan, double product_rate = 0);

  void add(rank_trace trace);
  void publish();

private:
  using event = nlohmann::ordered_json;

  void put(const event &what);
  void add_names(const rank_trace &of);
  void add_slice(const rank_trace &of, const trace_slice &slice);
  event described(const rank_trace &of, const trace_slice &slice) const;
  void add_step(const rank_trace &of, const trace_slice &slice, event &what);
  void add_message(const rank_trace &of, const trace_slice &slice);
  void add_memory(int rank, double seconds, int64_t bytes);

  output_file file_;
  const plan &plan_;
  std::map<std::string, std::vector<int64_t>> needed_; // bytes at each step, by function
  double product_rate_;
  std::string text_; // that is not written yet
  bool is_first_ = true;
  int32_t training_step_ = 0;               // of the slice
  int64_t memory_ = 0;                      // that the last event says
  std::map<std::string, int64_t> messages_; // their numbers
};

} // namespace trainc
