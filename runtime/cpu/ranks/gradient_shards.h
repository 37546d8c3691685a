// SPDX-License-Identifier: Apache-2.0
//
// Gradients that no rank keeps as a whole (trainc --shard gradients). Each rank makes those of its
// micro-batch in activations that the others map; where a bucket is whole the ranks that have the
// same stage meet, and each adds its parts of it from all of them to what waits: accumulators that
// the ranks of the host have once, each rank the memory of its parts. The order is that of
// summation_rounds, so the bits are those of one rank.
#pragma once

#include "runtime/arena.h"
#include "runtime/cpu/ranks/flat_sum.h"
#include "runtime/cpu/ranks/rank_files.h"
#include "runtime/options/options.h"
#include "runtime/ranks/summation_order.h"

#include <memory>

namespace trainc {

struct shard_request {
  stage_layout layout;
  int64_t micro_batches;                 // of a rank and step
  std::vector<int64_t> activation_bytes; // of each stage
  communication_kind kind;
  accumulation accumulated;
};

class gradient_shards final : public gradient_exchange {
public:
  // Makes the activations arena and the accumulators. Collective; throws `failure`: ranks do not
  // share memory, or should not (exit_machine).
  gradient_shards(communicator &ranks, arena_set &arenas, const program &program,
                  const shard_request &request);

  char *activations() const { return activations_[static_cast<size_t>(layout_.replica)]; }
  // Where the step's total is once all ranks have made their last micro-batch's gradients.
  char *total() const { return accumulators_; }

  // A function of this micro-batch begins, of those whose gradients are added in its order.
  void begin(int64_t micro_batch, const bucket_list &buckets);
  void complete(int bucket) override;
  // It has ended: its activations may be written over.
  void end();

private:
  void meet() {
    if (files_)
      files_->meet_replicas();
  }
  template <typename Visit> void for_each_part(const gradient_bucket &bucket, Visit visit) const;
  void touch_parts(const program &program);

  data_type type_;
  int64_t arena_bytes_;
  stage_layout layout_;
  summation_rounds rounds_;
  std::unique_ptr<rank_files> files_; // none for a single rank
  std::vector<char *> activations_;   // of this stage in each replica
  char *accumulators_ = nullptr;
  std::vector<summand> summands_; // of the addition that is going on
  int64_t micro_batch_ = 0;       // of the function that runs
  bucket_list buckets_ = {};
};

} // namespace trainc
