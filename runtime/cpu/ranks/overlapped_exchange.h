// SPDX-License-Identifier: Apache-2.0
//
// An exchange of gradients that begins while the backward pass goes on: a thread of this rank takes
// each bucket that all ranks have made and sums this rank's part of it over the ranks, in the order
// that it has without. What is left when the backward pass ends is shared with the thread that ran
// it. Of ranks of one host, whose gradients and accumulators all see; nothing is allocated after
// the constructor.
#pragma once

#include "runtime/cpu/ranks/flat_sum.h"
#include "runtime/cpu/ranks/rank_files.h"
#include "runtime/gradient_exchange.h"
#include "runtime/process/background.h"
#include "runtime/ranks/exchange_times.h"

#include <atomic>
#include <vector>

namespace trainc {

// The addition of a step: what is added and where the total goes, addressed by element 0.
struct step_sum {
  data_type type;
  std::vector<summand> summands;
  std::vector<char *> targets;
};

class overlapped_exchange final : public gradient_exchange {
public:
  overlapped_exchange(rank_files &files, const stage_layout &layout, const bucket_list &buckets,
                      step_sum sum);

  // The function begins that makes the last gradients of a step, with which all else that is added
  // is there.
  void begin();
  void complete(int bucket) override;
  // It has ended. Every rank has the total then.
  exchange_times finish();

private:
  // Elements of this rank's part of a bucket: few enough that two threads end at about one time.
  struct slice {
    int bucket;
    int64_t begin, end;
  };
  // What one thread has done of a step.
  struct share {
    double began = 0; // first of all
    double adding = 0, beside = 0;
  };
  void add_slices(share &own);
  void await(int bucket) const;
  void beside(); // what the thread does

  rank_files &files_;
  const stage_layout layout_;
  const int64_t bucket_count_;
  const step_sum sum_;
  std::vector<slice> slices_; // in the order of their buckets
  std::atomic<size_t> next_ = 0;
  std::atomic<double> backward_ended_ = 0; // 0: it goes on
  uint32_t completed_before_ = 0;          // buckets of all steps before this one
  share of_thread_;
  background_worker worker_; // last: it uses the others
};

} // namespace trainc
