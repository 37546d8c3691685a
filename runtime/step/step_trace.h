// SPDX-License-Identifier: Apache-2.0
//
// Records when this rank did what in training steps, for traces, and brings the records
// of all ranks to the first, on one clock.
#pragma once

#include "runtime/observe/trace_file.h"
#include "runtime/pipeline.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/exchange_times.h"
#include "runtime/ranks/stage_layout.h"

#include <exception>
#include <functional>

namespace trainc {

const char *name_of(stage_action_kind kind);

class step_trace {
public:
  explicit step_trace(communicator &ranks) : ranks_(ranks) {}

  // Collective. Forgets what was recorded. The clock begins.
  void start();
  // Takes memory for `more` training steps like the `steps` that were recorded.
  void make_room(int64_t steps, int64_t more);

  // All times are those of seconds_now().
  void training_step(int64_t number, double begin, double end);
  void action(const stage_action &of, double begin, double end, double waiting);
  void rest(double begin, double end); // of a training step, in no action
  void enter(const char *function) { function_ = number_of(function); }
  void plan_step(int number, double begin, double end); // of the function
  void exchange(const exchange_times &of);
  // That was read, however long before it was needed; `waiting`: how long the step stood for it.
  void batch(int64_t number, int64_t bytes, double begin, double end, double waiting);
  void checkpoint(const char *what, int64_t step, int64_t bytes, double begin, double end);

  // Collective. Brings what all ranks recorded to the first, which hands it on in the order of the
  // ranks and keeps that of one at a time. Throws there, once all ranks are through, what `visit`
  // threw, or `failure` where memory was missing. Nothing is recorded any more.
  void gather(const program &program, const std::function<void(rank_trace)> &visit);

private:
  int32_t number_of(const char *name);
  void add(const trace_slice &slice);
  void give_up();
  // Sends those of another rank to the first, which may not want them.
  void move_slices(rank_trace &trace, size_t count, std::exception_ptr &problem);
  void add_part(trace_slice slice); // of what may have begun, or ended, before the trace

  communicator &ranks_;
  rank_trace own_;
  int32_t function_ = 0;
  double began_ = 0;          // the trace, by this host's clock
  bool lacks_memory_ = false; // then nothing more is recorded
};

} // namespace trainc
