// SPDX-License-Identifier: Apache-2.0
//
// What looks at some steps of a run: statistics of tensors (--watch), the tensors themselves
// (--dump), histograms (--histograms-every), memory (--memory-every), a trace (--profile-steps). A
// step that none looks at costs nothing.
#pragma once

#include "runtime/step/memory_watch.h"
#include "runtime/step/statistics_sink.h"
#include "runtime/step/step_observers.h"
#include "runtime/step/step_times.h"
#include "runtime/step/tensor_dump.h"
#include "runtime/step/tensor_watch.h"
#include "runtime/train/run_events.h"
#include "runtime/train/run_output.h"
#include "runtime/train/save_schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace trainc {

// Histograms of trained parameters, of their gradients and of what a step adds to them, for
// TensorBoard. Each rank shows those of its stage; the first one writes them all.
class parameter_histograms final : public tensor_sink {
public:
  // Takes its memory.
  explicit parameter_histograms(run &run);

  void take(const watched_values &values, statistics_taker &taker) override;
  // After a step: brings those of all stages to the first rank. Collective.
  void bring_to_first();
  // There, of the program's groups of parameters: the norms of their gradients, before they are
  // clipped. Empty where there is one group alone, or no rank has a gradient whole.
  std::vector<group_norm> norms_of_groups() const;
  // There, all. They are forgotten then.
  void write(int64_t step, run_events &events);

private:
  // Sent between ranks as it is.
  struct histogram {
    tensor_kind kind;
    int64_t parameter; // its number in the program
    tensor_statistics of;
  };

  run &run_;
  std::vector<std::string> names_; // of the program's parameters, as the module has them
  std::vector<histogram> taken_;
};

// When each rank did what in some steps, written as a trace. Nothing is measured outside of them,
// and nothing that goes wrong here ends a run.
class step_profile {
public:
  step_profile(run &run, const run_plan &plan, run_output &output, batch_feed &feed,
               save_schedule &saves);

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

  run &run_;
  const run_plan &plan_;
  run_output &output_;
  batch_feed &feed_;
  save_schedule &saves_;
  step_range steps_;
  step_trace trace_;
  step_times times_;
  step_range taken_; // so far, of those; none where it is empty
  bool is_written_ = false;
};

class step_watches {
public:
  // Of what the options ask for, which takes its memory. Changes nothing of the run's folder.
  // Collective; throws `failure`.
  step_watches(run &run, const run_plan &plan, run_output &output);

  // Opens the files, once the run has begun. Collective; throws `failure` (exit_disk).
  void begin(batch_feed &feed, save_schedule &saves);

  // Around a step. Collective.
  void begin_step(int64_t step, gradient_step &gradient);
  void end_step(int64_t step, gradient_step &gradient);
  // Of the step that was taken last, where its gradients were looked at: of the first rank.
  const std::vector<group_norm> &norms_of_groups() const { return norms_; }
  // After it, once it is in the log: writes what is to be written of it, warns of what could not
  // be. Collective.
  void note_step(int64_t step);
  // After the last step that was taken. Collective.
  void finish(int64_t last);

private:
  void open_files();
  bool is_watched(int64_t step) const { return (step - 1) % run_.options.watch_every == 0; }
  bool has_histograms(int64_t step) const {
    return parameters_ && step % run_.options.histograms_every == 0;
  }
  bool shows_memory(int64_t step) const {
    return memory_ && (step - 1) % run_.options.memory_every == 0;
  }
  bool is_profiled(int64_t step) const { return profile_ && profile_->has(step); }

  run &run_;
  const run_plan &plan_;
  run_output &output_;
  step_observers observers_;
  std::optional<tensor_watch> tensors_, dumped_, parameters_;
  std::optional<statistics_sink> statistics_;
  std::optional<memory_watch> memory_;
  std::optional<tensor_dump> dump_;
  std::optional<parameter_histograms> histograms_;
  std::optional<step_profile> profile_;
  std::vector<group_norm> norms_;
};

} // namespace trainc
