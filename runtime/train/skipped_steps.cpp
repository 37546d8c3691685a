// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/skipped_steps.h"

#include <cinttypes>
#include <cmath>

namespace trainc {

void skipped_steps::note_skipped(int64_t step, const step_result &result, bool is_spike,
                                 int64_t batch, int64_t batches, bool saves) {
  ++all_;
  ++in_a_row_;
  const bool is_loss = !std::isfinite(result.loss) || is_spike;
  std::string text =
      format_text("step %" PRId64 ": the %s is %g", step, is_loss ? "loss" : "gradient norm",
                  is_loss ? result.loss : result.gradient_norm);
  if (is_spike)
    text += format_text(", above %g, which is %g standard deviations above the mean", loss_limit(),
                        run_.options.spike_limit);
  if (in_a_row_ == 1) {
    const std::string found = is_spike ? "" : not_finite_data(batch, batches);
    output_.warn(text + ": the step is skipped" + (found.empty() ? "" : "; " + found));
  }
  if (in_a_row_ < run_.options.nonfinite_limit)
    return;
  if (in_a_row_ > 1)
    text += format_text("; %" PRId64 " steps in a row were skipped", in_a_row_);
  if (saves)
    text += "; checkpoints of earlier steps are as they were";
  text += all_ == step ? "\n  try: data without NaN, and with labels that count"
                       : "\n  try: a lower --learning-rate, or --clip-norm 1";
  throw failure(exit_diverged, run_.is_first() ? text : "", /*everywhere=*/true);
}

// What of the step's data is not finite, of all ranks: said by the first one, once.
std::string skipped_steps::not_finite_data(int64_t batch, int64_t batches) {
  if (!run_.is_first() || was_data_looked_at_)
    return "";
  was_data_looked_at_ = true;
  return run_.not_finite_data(
      run_.request_of_data(!run_.options.no_shuffle, seed_, /*partial_batches=*/true),
      data_part::training, batch, batches);
}

} // namespace trainc
