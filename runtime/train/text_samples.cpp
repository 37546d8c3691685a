// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/text_samples.h"

#include "runtime/process/signals.h"

#include <cerrno>
#include <cinttypes>
#include <cstring>

namespace trainc {

text_samples::text_samples(run &run, uint64_t seed, batch_feed &feed, run_output &output)
    : run_(run), feed_(feed), output_(output), writer_(run, seed, "option --sample-every"),
      reports_(run, /*means=*/0) {
  text_.reserve(run.options.prompt.size() + static_cast<size_t>(run.options.length) + 1);
}

int text_samples::write(int64_t step, bool may_be_there, const std::function<void()> &meanwhile) {
  run_.watch.now(activity::evaluating);
  run_.target.round_parameters();
  reports_.clear();
  std::string message;
  try {
    const bool is_there = written_step_ == step || (may_be_there && folder_ && folder_->has(step));
    if (run_.is_first() && !is_there)
      write_own(step, meanwhile);
  } catch (const failure &error) {
    reports_.mine().status = error.code;
    message = error.message;
  }
  reports_.mine().requests = take_signal_requests();
  run_.watch.now(activity::exchanging);
  reports_.exchange(message);
  run_.watch.now(activity::evaluating);
  return reports_.requests();
}

// Unless a request comes before its end.
void text_samples::write_own(int64_t step, const std::function<void()> &meanwhile) {
  text_ = run_.options.prompt;
  auto put = [&](char byte) {
    text_ += byte;
    meanwhile();
    return !has_signal_requests();
  };
  const bool is_whole = writer_(static_cast<uint64_t>(step), std::ref(put)); // allocates nothing
  feed_.forget();
  if (!is_whole)
    return;
  written_step_ = step;
  text_ += '\n';
  output_.events.write_sample(step, text_);
  if (!folder_ || folder_->write(step, text_) == 0)
    return;
  const std::string why = strerror(errno); // something is wrong anyway
  output_.warn(format_text("%s: the sample of step %" PRId64
                           " cannot be written: %s; training goes on",
                           folder_->path().c_str(), step, why.c_str()));
}

} // namespace trainc
