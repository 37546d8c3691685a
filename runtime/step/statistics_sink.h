// SPDX-License-Identifier: Apache-2.0
//
// Writes statistics of the tensors that are watched, a file for each rank.
#pragma once

#include "runtime/step/tensor_watch.h"

namespace trainc {

class statistics_sink final : public tensor_sink {
public:
  // Throws `failure` (exit_disk).
  statistics_sink(const run &run, const std::string &folder)
      : file_(folder + "/rank-" + std::to_string(run.ranks.rank()) + ".jsonl", run.prog.model_name,
              run.ranks.rank(), run.ranks.size()) {}

  void take(const watched_values &values, statistics_taker &taker) override {
    file_.write(values.step, values.micro_batch, values.tensor, values.statistics(taker));
  }

  // An errno, once, where the file could not be written.
  int take_error() {
    if (is_error_told_)
      return 0;
    file_.look();
    is_error_told_ = file_.error() != 0;
    return file_.error();
  }
  const std::string &path() const { return file_.path(); }

private:
  statistics_file file_;
  bool is_error_told_ = false;
};

} // namespace trainc
