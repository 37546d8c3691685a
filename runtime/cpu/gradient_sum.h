// SPDX-License-Identifier: Apache-2.0
//
// Gradients of a step's micro-batches, added in a fixed order (summation_order.h). Ranks of one
// host work in shared memory; ranks of several send messages. Both give the same bits.
#pragma once

#include "runtime/arena.h"
#include "runtime/communicator.h"
#include "runtime/cpu/flat_sum.h"
#include "runtime/gradient_parts.h"
#include "runtime/options.h"
#include "runtime/summation_order.h"

#include <memory>

namespace trainc {

struct gradient_request {
  data_type type;
  int64_t arena_bytes;
  int64_t reduced_bytes; // the first ones of the arena, which take part in sums
  int64_t gather_bytes;  // most that a rank gives to communicator::gather
  int64_t micro_batches; // of a rank and step
  communication_kind kind;
};

class gradient_sum {
public:
  // Makes the gradients arena and the accumulators, in memory that other ranks of this host can
  // see where possible. Collective; throws `failure`.
  gradient_sum(communicator &ranks, arena_set &arenas, const gradient_request &request);
  ~gradient_sum();
  gradient_sum(const gradient_sum &) = delete;
  gradient_sum &operator=(const gradient_sum &) = delete;

  char *gradients() const { return gradients_; }
  bool uses_shared_memory() const { return shares_memory_; }
  int64_t accumulator_bytes() const { return order_.accumulators() * arena_bytes_; }

  // Adds what the gradients arena has of micro-batch 0, 1, ... of this rank. With the last of a
  // step the ranks meet, and the total is in the gradients arena of every rank.
  void add(int64_t micro_batch);

private:
  struct transport;
  struct shared_transport;
  struct message_transport;
  bool share_memory(const gradient_request &request);
  // A place of the order, in a rank's memory that begins with its gradients arena.
  char *place_in(char *memory, int accumulator) const {
    return memory + (accumulator + 1) * arena_bytes_;
  }

  communicator &ranks_;
  data_type type_;
  int64_t arena_bytes_, elements_, micro_batches_;
  summation_order order_;
  gradient_parts parts_;
  char *gradients_ = nullptr; // the arena, then the accumulators
  bool shares_memory_ = false;
  std::vector<summand> summands_;        // of the addition that is going on
  std::unique_ptr<transport> transport_; // none for a single rank
};

} // namespace trainc
