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

namespace trainc {

const char *name_of(stage_action_kind kind);

class step_trace {
public:
  explicit step_trace(communicator &ranks) : ranks_(ranks) {}

  // Collective. Forgets what was recorded of the last `steps` training steps, and has memory for
  // `more` of them. The clock begins.
  void start(int64_t steps, int64_t more);

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

  // Collective. Of all ranks in their order, on the first; of this one elsewhere.
  std::vector<rank_trace> gather(const program &program);

private:
  int32_t number_of(const char *name);
  void add(const trace_slice &slice) { own_.slices.push_back(slice); }
  void add_part(trace_slice slice); // of what may have begun, or ended, before the trace

  communicator &ranks_;
  rank_trace own_;
  int32_t function_ = 0;
  double began_ = 0; // the trace, by this host's clock
};

} // namespace trainc
