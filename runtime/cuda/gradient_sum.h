// SPDX-License-Identifier: Apache-2.0
//
// Gradients summed over micro-batches and ranks in the order of summation_order.h. NCCL's own
// reductions choose an order by the number of ranks and the machine; so the ranks exchange pieces
// of their parts, each adds up its own part in that order, and the totals are sent back. All of it
// is queued on the compute stream, or on the one that has its turn there (bucket_exchange.h). Of a
// step in stages each stage's replicas exchange what the stage's chunks have; then every stage gets
// the totals of the others.
#pragma once

#include "runtime/cuda/flat_sum.h"
#include "runtime/cuda/rank_group.h"
#include "runtime/cuda/update_shares.h"
#include "runtime/gradient_exchange.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/gradient_parts.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/ranks/summation_order.h"

#include <cstddef>
#include <vector>

namespace trainc {

class gradient_sum {
public:
  static constexpr int64_t piece_bytes = 32 << 20; // from each rank; enough for full bandwidth

  gradient_sum(communicator &ranks, const stage_layout &layout, data_type type,
               int64_t reduced_bytes, int64_t micro_batches, accumulation how,
               const pipeline *stages = nullptr, int64_t largest_piece_bytes = piece_bytes);
  gradient_sum(const gradient_sum &) = delete;
  gradient_sum &operator=(const gradient_sum &) = delete;

  // What lies on the device besides the gradients. Of accumulators a step in stages uses, of so
  // many addresses, some pieces.
  int64_t accumulator_bytes() const;
  int64_t accumulator_addresses() const;
  std::vector<element_range> accumulator_pieces() const;
  int64_t exchange_bytes() const;
  int64_t table_bytes() const; // of the order of all sums

  // Joins the other ranks, on the device chosen before. Collective. Throws `failure`
  // (exit_machine).
  void start();
  // Copies the table there too.
  void place(char *gradients, char *accumulators, char *received, char *table);

  // Queues what is to be added of micro-batch 0, 1, ... of this rank. The last of a step leaves the
  // total in the gradients of every rank.
  void queue(int64_t micro_batch);
  // The same of the last micro-batch of a step and a bucket alone; of all buckets, in one order on
  // all ranks, it is as much as `queue`.
  void queue_last(const gradient_bucket &bucket);
  // The same of some of the elements of a step in stages, in turn: what a chunk has of a
  // micro-batch, the exchange of a chunk's sums between replicas, and the totals of all chunks.
  void add(int64_t micro_batch, const range_list &list);
  void exchange(std::initializer_list<range_list> lists);
  void share_totals(const pipeline &stages);
  // Queues that each rank gets what others have updated.
  void share_updated(char *parameters, const update_shares &shares);
  // As of rank_group.
  void check() const;
  void abandon();

private:
  // Where a list of summands lies in the table.
  struct table_part {
    size_t first;
    int count;
    int accumulators, received; // how many arrays of each it may name
  };
  table_part enter(const std::vector<addend> &addends);
  // Replicas each sum a part of a range, in pieces, the one at hand `done` after a part's begin.
  struct parted_range {
    int64_t first;
    gradient_parts parts;
    int64_t done;
  };
  void add(int64_t micro_batch, const element_range &range);
  void exchange(const element_range &range);
  void queue_sum(const table_part &part, int64_t offset, int64_t length, char *target);
  void exchange_parts(const parted_range &range);
  void publish_totals(const parted_range &range);
  // Where an element lies in the gradients or an accumulator.
  char *place_of(int accumulator, int64_t element) const;
  int64_t begin_of(const parted_range &range, int replica) const;
  size_t piece_size(const parted_range &range, int replica) const;

  communicator &ranks_;
  stage_layout layout_;
  data_type type_;
  std::vector<element_range> ranges_; // that this rank has gradients of
  int64_t elements_, stride_;         // stride_: from one accumulator to the next
  summation_order order_;
  int64_t piece_elements_;
  std::vector<summand> table_;
  std::vector<table_part> own_; // by micro-batch
  table_part exchange_;
  rank_group replicas_, stages_; // of this rank's stage, of this rank's replica
  char *gradients_ = nullptr, *accumulators_ = nullptr, *received_ = nullptr;
  const summand *table_on_device_ = nullptr;
};

} // namespace trainc
