// SPDX-License-Identifier: Apache-2.0
//
// What looks at some steps of a run: statistics of tensors (--watch), the tensors themselves
// (--dump), histograms (--histograms-every), memory (--memory-every), a trace (--profile-steps). A
// step that none looks at costs nothing.
#pragma once

#include "runtime/step/memory_watch.h"
#include "runtime/step/statistics_sink.h"
#include "runtime/step/step_observers.h"
#include "runtime/step/tensor_dump.h"
#include "runtime/train/parameter_histograms.h"
#include "runtime/train/step_profile.h"

#include <optional>

namespace trainc {

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
  void open_files(const std::string &folder);
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
