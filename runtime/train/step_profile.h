// SPDX-License-Identifier: Apache-2.0
//
// When each rank did what in some steps of a run, written as a trace: `--profile-steps`. Nothing is
// measured outside of them, and nothing that goes wrong here ends a run.
#pragma once

#include "runtime/step/step_times.h"
#include "runtime/train/run_output.h"
#include "runtime/train/save_schedule.h"

#include <string>

namespace trainc {

class step_profile {
public:
  // Steps first + 1 to last will follow. `folder`: of the run.
  step_profile(run &run, run_output &output, batch_feed &feed, save_schedule &saves, int64_t first,
               int64_t last, std::string folder);

  // Whether the step is to be taken between these, where the result observes it. Collective.
  bool has(int64_t step) const { return steps_.has(step); }
  step_times &begin_step(int64_t step);
  void end_step();

  // After a step: whether none of those to be profiled follows.
  bool is_over(int64_t step) const { return !is_written_ && step + 1 >= steps_.end; }
  // Writes what there is, once; a run may end before. `last`: the step that was taken last.
  // Collective.
  void write(int64_t last);

private:
  void warn_of_none(int64_t last);
  void write_file(const std::string &path, double product_rate);
  void begin_folder(const std::string &path) const;

  run &run_;
  run_output &output_;
  batch_feed &feed_;
  save_schedule &saves_;
  step_range steps_;
  std::string folder_;
  step_trace trace_;
  step_times times_;
  int64_t first_, last_; // steps first + 1 to last are taken
  step_range taken_;     // so far, of those; none where it is empty
  bool is_written_ = false;
};

} // namespace trainc
