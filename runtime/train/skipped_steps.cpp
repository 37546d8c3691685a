// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/skipped_steps.h"

#include "runtime/process/signals.h"
#include "runtime/step/finite_watch.h"

#include <cinttypes>
#include <cmath>
#include <optional>

namespace trainc {

skipped_steps::skipped_steps(run &run, const run_plan &plan, run_output &output)
    : run_(run), plan_(plan), output_(output), losses_(plan.resumed.losses),
      all_(plan.resumed.skipped_steps) {
  if (run.prog.loss_scale_offset >= 0)
    scale_ = plan.scale;
}

void skipped_steps::note_skipped(int64_t step, const step_result &result, bool is_spike,
                                 int64_t batch, gradient_step &gradient, bool saves) {
  if (run_.prog.updates_in_backward && std::isfinite(result.loss) && !is_spike)
    throw failure(exit_diverged,
                  run_.is_first()
                      ? format_text("step %" PRId64
                                    ": the gradient norm is %g, and some parameters "
                                    "were updated before that was known (trainc "
                                    "--update-in-backward)\n  try: --resume latest with a lower "
                                    "--learning-rate, or data of a smaller scale",
                                    step, result.gradient_norm)
                      : "",
                  /*everywhere=*/true);
  ++all_;
  ++in_a_row_;
  const double scale = scale_.factor;
  if (std::isfinite(result.loss))
    scale_.note(/*is_gradient_finite=*/is_spike, run_.options.scale_rules);
  if (scale_.factor < scale)
    return;
  ++not_of_scale_;
  const bool is_loss = !std::isfinite(result.loss) || is_spike;
  std::string text =
      format_text("step %" PRId64 ": the %s is %g", step, is_loss ? "loss" : "gradient norm",
                  is_loss ? result.loss : result.gradient_norm);
  if (scale > 0 && !is_loss)
    text += format_text(" with a loss scale of %g", scale);
  if (is_spike)
    text += format_text(", above %g, which is %g standard deviations above the mean", loss_limit(),
                        run_.options.spike_limit);
  const bool is_over = not_of_scale_ >= run_.options.nonfinite_limit, is_new = not_of_scale_ == 1;
  std::string found;
  if (!is_spike && (is_over || (is_new && !was_data_looked_at_)))
    found = run_.ranks.broadcast(not_finite_data(batch, gradient.batches_per_step()));
  are_of_data_ |= !found.empty();
  if (!found.empty())
    advice_ = "data without NaN and infinities";
  else if (is_new) {
    are_of_data_ = false;
    advice_.clear();
    found = is_spike ? "" : not_finite_tensor(step, batch, gradient);
  }
  const std::string ending = found.empty() ? "" : "; " + found;
  if (is_new)
    output_.warn(text + ": the step is skipped" + ending);
  if (!is_over)
    return;
  if (in_a_row_ > 1)
    text += format_text("; %" PRId64 " steps in a row were skipped", in_a_row_);
  give_up(text + ending, step - in_a_row_, saves);
}

// `last_taken`: the last step that was.
void skipped_steps::give_up(std::string text, int64_t last_taken, bool saves) const {
  if (saves && are_of_data() && last_taken > plan_.first)
    text += format_text("; the checkpoint of step %" PRId64 " has what was learnt before them",
                        last_taken);
  else if (saves)
    text += "; checkpoints of earlier steps are as they were";
  text += "\n  try: " + (!advice_.empty()  ? advice_
                         : last_taken == 0 ? "data with labels that count, and of a smaller scale"
                                           : "a lower --learning-rate, or --clip-norm 1");
  if (scale_.factor > 0)
    text += "; or trainc --precision bf16, which has the range of f32";
  throw failure(exit_diverged, run_.is_first() ? text : "", /*everywhere=*/true);
}

// Takes the micro-batches of the step again and looks at every tensor: the step changed nothing.
// Once in a run. Collective.
std::string skipped_steps::not_finite_tensor(int64_t step, int64_t batch, gradient_step &gradient) {
  if (were_tensors_looked_at_)
    return "";
  were_tensors_looked_at_ = true;
  std::optional<finite_watch> watch;
  try {
    watch.emplace(run_);
  } catch (const failure &) { // the trainer is alone, without its plan
  }
  if (watch)
    watch->attach(gradient);
  const int requests = gradient(data_part::training, batch, step).requests;
  if (watch)
    watch->detach(gradient);
  if (requests != no_request) // came meanwhile: the next step hears of them
    request(static_cast<signal_request>(requests));
  const std::string own = watch ? watch->found() : "";
  for (int rank = 0; rank < run_.ranks.size(); ++rank)
    if (const std::string found = run_.ranks.broadcast(own, rank); !found.empty()) {
      advice_ = run_.ranks.broadcast(watch ? watch->advice() : "", rank);
      return "the first tensor that is not finite" +
             (run_.ranks.size() > 1 ? " on rank " + std::to_string(rank) : "") + ": " + found;
    }
  return "";
}

// What of the step's data is not finite, of all ranks: the first one knows it.
std::string skipped_steps::not_finite_data(int64_t batch, int64_t batches) {
  was_data_looked_at_ = true;
  if (!run_.is_first())
    return "";
  return run_.not_finite_data(
      run_.request_of_data(!run_.options.no_shuffle, plan_.order.seed, /*partial_batches=*/true),
      data_part::training, batch, batches);
}

} // namespace trainc
