// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a step's micro-batches, added in a fixed order (summation_order.h). Ranks of one
// host work in shared memory; ranks of several send messages. Both give the same bits.
#pragma once

#include "runtime/arena.h"
#include "runtime/cpu/ranks/flat_sum.h"
#include "runtime/cpu/ranks/overlapped_exchange.h"
#include "runtime/options/options.h"
#include "runtime/pipeline.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/gradient_parts.h"
#include "runtime/ranks/stage_layout.h"
#include "runtime/ranks/summation_order.h"

#include <initializer_list>
#include <memory>

namespace trainc {

struct gradient_request {
  data_type type;
  int64_t arena_bytes;
  int64_t reduced_bytes; // the first ones of the arena, which take part in sums
  int64_t micro_batches; // of a rank and step
  communication_kind kind;
  accumulation accumulated;
  // Of a step in stages: the rank's place, and the elements that its stage has gradients of.
  stage_layout layout = {};
  std::vector<element_range> ranges = {};
  // The buckets that the function which makes gradients tells of; given where the exchange is to
  // begin while it runs, in shared memory then.
  bucket_list buckets = {};
  bool must_overlap = false; // else only where ranks share memory
};

class gradient_sum {
public:
  // Makes the gradients arena and the accumulators, in memory that other ranks of this host can
  // see where possible. Collective; throws `failure`.
  gradient_sum(communicator &ranks, arena_set &arenas, const gradient_request &request);
  ~gradient_sum();
  gradient_sum(const gradient_sum &) = delete;
  gradient_sum &operator=(const gradient_sum &) = delete;

  // Where the next micro-batch's gradients go: where a sum waits for others it keeps its memory,
  // and the gradients arena goes on in that of an accumulator.
  char *gradients() const { return gradients_; }
  // Where the step's total is after the exchange: of a step in stages in one arena for all ranks
  // that share memory.
  char *total() const { return total_; }
  bool uses_shared_memory() const { return shares_memory_; }
  // Whether the exchange goes on beside the backward pass.
  bool overlaps() const { return overlapped_ != nullptr; }

  // The function begins that makes the gradients of micro-batch 0, 1, ... of a step; returns whom
  // it tells of its buckets, or null.
  gradient_exchange *begin(int64_t micro_batch);
  // Adds what the gradients arena has of micro-batch 0, 1, ... of this rank.
  void add(int64_t micro_batch);
  // After the last one of a step: the ranks meet, and every rank has the total.
  void exchange();
  const exchange_times &times() const { return times_; } // of the last one; of no step in stages

  // The same of some of the elements of a step in stages. An exchange is one of the stage's
  // replicas alone; once all ranks have shared their totals after all exchanges and have met, the
  // total is whole.
  void add(int64_t micro_batch, range_list ranges);
  void exchange(std::initializer_list<range_list> lists);
  void share_totals(const pipeline &stages);

private:
  range_list all() const { return {ranges_.data(), static_cast<int64_t>(ranges_.size())}; }
  struct transport;
  struct shared_transport;
  struct message_transport;
  bool share_memory(communicator &ranks, const gradient_request &request);
  int64_t memory_bytes() const; // of the arena and the accumulators, as addresses
  // Which arena of a rank's memory each place of the order has, the gradients first.
  using places = std::vector<int>;
  places places_of(const summation_order &order) const; // after a step's last micro-batch
  void begin_step();
  void touch_own();
  char *place_in(char *memory, const places &of_rank, int accumulator) const {
    return memory + of_rank[static_cast<size_t>(accumulator) + 1] * arena_bytes_;
  }
  char *own_place(int accumulator) const { return place_in(memory_, places_, accumulator); }

  data_type type_;
  int64_t arena_bytes_, elements_, micro_batches_;
  summation_order order_;
  stage_layout layout_;
  std::vector<element_range> ranges_; // of the arena that this rank has gradients of: its stage's
  char *memory_ = nullptr;            // of the gradients and the accumulators
  places places_;                     // now
  std::vector<places> last_places_;   // after a step's last micro-batch, of each replica
  char *gradients_ = nullptr;
  char *total_ = nullptr;
  bool shares_memory_ = false;
  std::vector<summand> summands_;                   // of the addition that is going on
  std::unique_ptr<transport> transport_;            // none for a single rank
  std::unique_ptr<overlapped_exchange> overlapped_; // none where it begins after the function
  exchange_times times_;
};

} // namespace trainc
