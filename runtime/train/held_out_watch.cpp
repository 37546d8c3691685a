// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/held_out_watch.h"

#include "runtime/process/clock.h"
#include "runtime/process/signals.h"

#include <cinttypes>
#include <cmath>

namespace trainc {

static batch_feed &own_or(std::optional<batch_feed> &own, batch_feed &other, run &run,
                          run_sources &sources) {
  if (!sources.validation)
    return other;
  return own.emplace(run.prog, run.target, *sources.validation);
}

held_out_watch::held_out_watch(run &run, const run_plan &plan, run_sources &sources,
                               batch_feed &training, run_output &output)
    : run_(run), output_(output), training_feed_(training),
      evaluation_(run, sources.held_out(), own_or(own_feed_, training, run, sources)),
      watched_(run.options.keep.watched()), part_(sources.held_out_part()),
      batches_(plan.held_out_batches), best_(plan.best) {}

void held_out_watch::begin() { evaluated_seconds_ = seconds_now(); }

int held_out_watch::evaluate(int64_t step, const evaluation::interruption &ends) {
  const int requests = evaluation_(part_, batches_, ends);
  if (own_feed_) { // the one batch on the device is not what the other feed took it for
    training_feed_.forget();
    own_feed_->forget();
  }
  if (requests != no_request)
    return requests;
  evaluated_step_ = step;
  evaluated_seconds_ = seconds_now();
  warn_of(step);
  best_.add(step, metric_of(watched_, NAN, results()));
  output_.log->write_held_out(step, results());
  output_.events.write_held_out(step, results());
  output_.shown.held_out(step, results());
  return no_request;
}

// Once each.
void held_out_watch::warn_of(int64_t step) {
  if (const std::string lack = is_lack_said_ ? "" : evaluation_.lack_of_labels(); !lack.empty()) {
    is_lack_said_ = true;
    output_.warn("no valid labels in the held-out data: " + lack +
                 ", so there is no mean\n  try: data with labels that count");
  }
  if (std::isfinite(results()[0].value) || is_lack_said_ || is_infinity_said_)
    return;
  is_infinity_said_ = true;
  output_.warn(format_text("step %" PRId64 ": the held-out loss is not finite\n  try: "
                           "--check-data, which names a sample with NaN or an infinity; or a "
                           "lower --learning-rate",
                           step));
}

std::span<const named_number> held_out_watch::results_of(int64_t step) const {
  if (evaluated_step_ != step)
    return {};
  return results();
}

bool is_stale(const trainer_options &options, const best_evaluation &best) {
  return options.patience > 0 && best.later >= options.patience;
}

std::string text_of_patience(const trainer_options &options, const best_evaluation &best) {
  const std::string watched = options.keep.watched();
  const double value = more_is_better(watched) ? -best.value : best.value;
  std::string text = counted(best.later, "evaluation") + " without a better " + watched;
  if (best.step > 0)
    text += format_text(" than %g, of step %" PRId64, value, best.step);
  return text + format_text(" (--patience %" PRId64 ")", options.patience);
}

} // namespace trainc
