// SPDX-License-Identifier: Apache-2.0
//
// Gradients that no rank keeps as a whole (trainc --shard gradients). Each rank makes those of its
// micro-batch in its activations. When a bucket is whole, each gets from the others their gradients
// of its part of the bucket, and adds them to what waits: accumulators, in memory for its parts
// alone. The order is that of summation_rounds, so the bits are those of one rank. For the update
// all ranks' totals are gathered where activations were: every rank computes the norm of all
// gradients.
#pragma once

#include "runtime/cuda/flat_sum.h"
#include "runtime/cuda/rank_group.h"
#include "runtime/cuda/update_shares.h"
#include "runtime/gradient_exchange.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/ranks/summation_order.h"

#include <vector>

namespace trainc {

class gradient_shards {
public:
  // Of a program without stages.
  gradient_shards(communicator &ranks, const program &program, int64_t micro_batches,
                  accumulation how);
  gradient_shards(const gradient_shards &) = delete;
  gradient_shards &operator=(const gradient_shards &) = delete;

  // Whose parts are whose, each with what lies before the next: ascending, all of the gradients.
  const std::vector<update_share> &shares() const { return shares_; }

  // What lies on the device: of so many addresses of accumulators some pieces, in bytes.
  int64_t accumulator_bytes() const;
  int64_t accumulator_addresses() const;
  std::vector<element_range> accumulator_pieces() const;
  int64_t exchange_bytes() const; // a bucket of the other ranks
  int64_t table_bytes() const;    // of the order of all sums

  // Joins the other ranks, on the device chosen before. Collective. Throws `failure`
  // (exit_machine).
  void start();
  // Copies the table there too.
  void place(char *activations, char *accumulators, char *received, char *table);
  // Queues a first message between any two ranks.
  void meet();

  // Of a micro-batch of this rank: queues the exchange and the addition of a bucket.
  void queue(int64_t micro_batch, int bucket);
  // Queues the copy of all totals to an arena of gradients.
  void gather(char *gradients);
  // Queues that each rank gets what others have updated.
  void share_updated(char *parameters, const update_shares &shares);
  // As of rank_group.
  void check() const { group_.check(); }
  void abandon() { group_.abandon(); }

private:
  // A rank's part of a bucket: pieces of gradients, and where each begins among what is received.
  struct part_piece {
    gradient_piece piece;
    int64_t received; // elements
    int64_t count() const { return piece.elements.end - piece.elements.begin; }
  };
  using part = std::vector<part_piece>;
  // Where the summands of a sum lie in the table, and which accumulator it goes to.
  struct table_sum {
    size_t first;
    int count;
    int accumulators, received; // how many arrays of each it may name
    int target;
  };
  void cut(const gradient_bucket &bucket);
  void find_shares();
  table_sum enter(const summation &sum);
  void exchange(int bucket);
  void add(int64_t micro_batch, const part_piece &piece);

  communicator &ranks_;
  data_type type_;
  int self_, count_;
  int64_t elements_, stride_; // stride_: from one accumulator to the next
  summation_rounds rounds_;
  std::vector<std::vector<part>> parts_; // of each bucket, by rank
  int64_t received_stride_ = 0;          // from one rank's to the next's
  std::vector<update_share> shares_;
  std::vector<summand> table_;
  std::vector<std::vector<table_sum>> sums_; // of each micro-batch
  rank_group group_;
  char *activations_ = nullptr, *accumulators_ = nullptr, *received_ = nullptr,
       *table_at_ = nullptr;
};

} // namespace trainc
