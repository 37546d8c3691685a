// SPDX-License-Identifier: Apache-2.0
//
// What the model makes of data without learning from it: the mean loss of many batches, and what
// the program tells besides.
#pragma once

#include "runtime/run/run.h"
#include "runtime/run/step_log.h"
#include "runtime/step/batch_feed.h"
#include "runtime/step/rank_report.h"

#include <functional>
#include <optional>
#include <vector>

namespace trainc {

// The loss and the program's metrics over the samples in batches [0, count) of a part, each a mean
// over all labels that count, or all samples, added in order; ranks take batches in turn.
class evaluation {
public:
  evaluation(run &run, loader &data, batch_feed &feed);
  // What may not wait for the last batch, as signal_request bits.
  struct interruption {
    std::function<int()> mine;      // of this rank, after each batch
    std::function<int(int)> of_all; // those of all ranks for which the evaluation ends; collective
  };
  // Collective, allocates nothing. Returns what it was ended for, then without results; else 0.
  int operator()(data_part part, int64_t count, const interruption &ends = {});
  // Of the last call: first the loss; of a cross entropy then the perplexity, its exponential.
  const std::vector<named_number> &results() const { return results_; }
  // Of the last call, where there is no mean: "the loss ignores every label", or one of its parts
  // does. Else empty.
  std::string lack_of_labels() const;

private:
  void add_batch(data_part part, int64_t batch);
  void set_results();
  // What evaluate makes of a batch: part of the loss, or a metric.
  struct quantity {
    tensor_place values;     // a scalar, or one number for each sample
    tensor_place weight;     // of that mean; no name: the samples of the batch, over its size
    tensor_place of_samples; // no name: there are none
    bool is_sum;
  };
  weighed_mean mean_in_batch(const quantity &of, int64_t count) const;

  run &run_;
  loader &data_;
  batch_feed &feed_;
  std::vector<quantity> quantities_; // parts of the loss, then metrics
  struct total {
    double sum, weight;
  };
  std::vector<total> totals_;           // of each quantity
  std::optional<rank_reports> reports_; // with the mean of each quantity
  std::vector<named_number> results_;
  size_t loss_parts_ = 0, parts_without_labels_ = 0;
};

} // namespace trainc
