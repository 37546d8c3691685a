// SPDX-License-Identifier: Apache-2.0
//
// When a run saves, and what becomes of it: at most one checkpoint is being written, in the
// background where that is possible.
#pragma once

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/step/step_trace.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_plan.h"

#include <optional>
#include <string>

namespace trainc {

class save_schedule {
public:
  // Where nothing is to be saved, all that follows does nothing.
  save_schedule(run &run, const run_plan &plan, run_output &output, folder_watch &folder)
      : run_(run), plan_(plan), output_(output), folder_(folder) {}

  // Of a rank that keeps the run's folder. Throws `failure` (exit_disk) where a dry run finds no
  // room for a checkpoint; else warns.
  void check_space(const folder_groups &groups) const;
  // Makes the writer, which takes all memory. Collective; throws `failure`.
  void set_up(const folder_groups &groups);
  // Before the first checkpoint: checkpoint_writer::open.
  void open(const std::string &written_by);

  bool saves() const { return writer_.has_value(); }
  int64_t saved_step() const { return saved_step_; } // of its own checkpoints; -1: there is none
  double saved_seconds() const { return saved_seconds_; } // when, by the clock; or it began

  // One is wanted, once a step is finite.
  void want() { is_wanted_ = true; }
  bool is_wanted() const { return is_wanted_; }
  // A step was finite: what the newest checkpoint made superfluous may go.
  void prune();

  // Saves unless the step is saved, after the one before is complete. Where it is the `last`, or
  // the run has no background, waits for it. Collective.
  void save(const run_position &at, bool last);
  // The same of a step that was saved before something else was known of it.
  void save_again(const run_position &at, bool last);
  // Asks the other ranks to wait with `proceed` (writing_request), while this one writes.
  void ask_to_wait() const;
  // After a step: goes on with the checkpoint where no rank is writing any more. Collective.
  void proceed(int requests);
  // Unless it is null, told when this rank worked at checkpoints. The one before is told of what
  // goes on.
  void record(step_trace *trace);
  // Waits for the one that is being written, and says what became of it. Throws `failure` where
  // the `last` was not written, or the parameters are not finite. Collective.
  void finish(bool last = false);

private:
  void tell(double now) const;

  run &run_;
  const run_plan &plan_;
  run_output &output_;
  folder_watch &folder_;
  std::optional<checkpoint_writer> writer_;
  bool writes_ = false;
  bool is_wanted_ = false;
  bool prunes_next_ = false;
  int64_t saved_step_ = -1;
  double saved_seconds_ = 0;
  step_trace *trace_ = nullptr;
};

} // namespace trainc
