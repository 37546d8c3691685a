// SPDX-License-Identifier: Apache-2.0
//
// Steps that left everything as it was: their loss or gradient was not finite, or the loss was a
// spike (--spike-limit). The scale of the loss follows from which steps these are.
#pragma once

#include "runtime/checkpoint/loss_statistics.h"
#include "runtime/step/gradient_step.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_plan.h"

#include <string>

namespace trainc {

class skipped_steps {
public:
  skipped_steps(run &run, const run_plan &plan, run_output &output);

  // The least loss that is a spike; infinity: there is none.
  double loss_limit() const { return losses_.limit(run_.options.spike_limit); }

  // Of the next step.
  const loss_scale &scale() const { return scale_; }

  void note_taken(double loss) {
    in_a_row_ = not_of_scale_ = 0;
    losses_.add(loss);
    scale_.note(/*is_gradient_finite=*/true, run_.options.scale_rules);
  }
  // Where a lower scale of the loss may do, that is all. Else warns of the first in a row, and of
  // the first tensor that was not finite where it can be found.
  // `batch`: the first of the step, which `gradient` took; `saves`: whether there are checkpoints.
  // Collective. Throws `failure` (exit_diverged) after --nonfinite-limit in a row: parameters and
  // states are those after the last step that was taken.
  void note_skipped(int64_t step, const step_result &result, bool is_spike, int64_t batch,
                    gradient_step &gradient, bool saves);

  int64_t all() const { return all_; } // of the whole run
  int64_t in_a_row() const { return in_a_row_; }
  // Whether the data were seen to be the reason, and nothing was updated.
  bool are_of_data() const { return are_of_data_ && !run_.prog.updates_in_backward; }
  bool is_last_taken() const { return in_a_row_ == 0; }
  const loss_statistics &losses() const { return losses_; }

private:
  std::string not_finite_data(int64_t batch, int64_t batches);
  [[noreturn]] void give_up(std::string text, int64_t last_taken, bool saves) const;
  std::string not_finite_tensor(int64_t step, int64_t batch, gradient_step &gradient);

  run &run_;
  const run_plan &plan_;
  run_output &output_;
  loss_statistics losses_; // of the steps that were taken
  loss_scale scale_;
  int64_t all_, in_a_row_ = 0;
  int64_t not_of_scale_ = 0; // those in a row for which no lower scale would have done
  bool was_data_looked_at_ = false, were_tensors_looked_at_ = false; // for a warning
  bool are_of_data_ = false;
  std::string advice_; // that follows from what was found
};

} // namespace trainc
