// SPDX-License-Identifier: Apache-2.0
//
// Text that a byte-token model writes every --sample-every steps, into the run's folder.
#pragma once

#include "runtime/commands/text_writer.h"
#include "runtime/run/sample_folder.h"
#include "runtime/step/batch_feed.h"
#include "runtime/step/rank_report.h"
#include "runtime/train/run_output.h"

#include <functional>
#include <optional>
#include <string>

namespace trainc {

class text_samples {
public:
  // Takes all memory. Throws `failure` where the model writes no text. The batch of `feed` that
  // lies on the device is lost with each sample.
  text_samples(run &run, uint64_t seed, batch_feed &feed, run_output &output);

  // Where they go; none of a dry run is kept. Of the first rank.
  void open(const std::string &run_folder) { folder_.emplace(run_folder); }

  // By the first rank, for which the others wait: all hear of requests that came meanwhile
  // (signal_request bits), which are returned. `meanwhile` is called after each byte. One that is
  // there already is not written again where `may_be_there`. Collective, allocates nothing.
  int write(int64_t step, bool may_be_there, const std::function<void()> &meanwhile);

private:
  void write_own(int64_t step, const std::function<void()> &meanwhile);

  run &run_;
  batch_feed &feed_;
  run_output &output_;
  text_writer writer_;
  rank_reports reports_;
  std::optional<sample_folder> folder_;
  int64_t written_step_ = -1;
  std::string text_; // as long as one is
};

} // namespace trainc
