// SPDX-License-Identifier: Apache-2.0
//
// The held-out loss and metrics of a run that trains: the best evaluation, and when there was none
// better for too long (--patience).
#pragma once

#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/commands/evaluation.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_plan.h"

#include <optional>
#include <span>
#include <string>

namespace trainc {

class held_out_watch {
public:
  // `training`: the feed of the training data, which held-out samples share where they have no
  // files of their own. Takes all memory.
  held_out_watch(run &run, const run_plan &plan, run_sources &sources, batch_feed &training,
                 run_output &output);

  // After the step. Returns requests that came meanwhile (signal_request bits): then there are no
  // results. Collective, allocates nothing where all is well.
  int evaluate(int64_t step, const evaluation::interruption &ends);

  // Of the step's evaluation; empty: it had none.
  std::span<const named_number> results_of(int64_t step) const;
  const std::vector<named_number> &results() const { return evaluation_.results(); }
  const best_evaluation &best() const { return best_; }
  bool is_best(int64_t step) const { return best_.step == step; }
  // When the last one was, by the clock; or the run began.
  double evaluated_seconds() const { return evaluated_seconds_; }
  void begin();

private:
  void warn_of(int64_t step);

  run &run_;
  run_output &output_;
  batch_feed &training_feed_;
  std::optional<batch_feed> own_feed_;
  evaluation evaluation_;
  const std::string watched_; // the metric of best_
  const data_part part_;
  const int64_t batches_;
  best_evaluation best_;
  int64_t evaluated_step_ = -1;
  double evaluated_seconds_ = 0;
  bool is_lack_said_ = false, is_infinity_said_ = false;
};

// Whether --patience is over.
bool is_stale(const trainer_options &options, const best_evaluation &best);

// "3 evaluations without a better held-out-loss than 1.25, of step 40 (--patience 3)"
std::string text_of_patience(const trainer_options &options, const best_evaluation &best);

} // namespace trainc
