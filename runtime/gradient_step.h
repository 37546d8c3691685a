// SPDX-License-Identifier: Apache-2.0
//
// The gradient of one step: the micro-batches of every rank, added in one order.
#pragma once

#include "runtime/run.h"

#include <vector>

namespace trainc {

struct gradient_result {
  double loss;  // mean over all micro-batches, added in their order
  int requests; // signals that any rank got (signal_request bits)
};

class gradient_step {
public:
  gradient_step(run &run, loader &data, int64_t micro_batches);

  int64_t batches_per_step() const { return micro_batches_ * run_.ranks.size(); }

  // Takes batches first_batch ... first_batch + batches_per_step() - 1 of the
  // part; batch first_batch + j * ranks + r is micro-batch j of rank r. Leaves the
  // sum in the gradients arena of every rank. An error of any rank is thrown on
  // all. Allocates nothing.
  gradient_result operator()(data_part part, int64_t first_batch);

private:
  run &run_;
  loader &data_;
  int64_t micro_batches_;
  std::vector<double> own_, all_; // status, signals, losses
};

// Mean loss of batches [0, count) of a part, added in their order; ranks take them
// in turn. Collective, allocates nothing.
class mean_loss {
public:
  mean_loss(run &run, loader &data);
  double operator()(data_part part, int64_t count);

private:
  run &run_;
  loader &data_;
  std::vector<double> all_;
};

} // namespace trainc
