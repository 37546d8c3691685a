// SPDX-License-Identifier: Apache-2.0
//
// Gradients of all ranks, added in a fixed order. Ranks of one host work in shared
// memory; ranks of several send messages. Both give the same bits.
#pragma once

#include "runtime/arena.h"
#include "runtime/communicator.h"
#include "runtime/gradient_parts.h"

#include <memory>

namespace trainc {

enum class communication_kind { automatic, shared_memory, messages };

struct gradient_request {
  data_type type;
  int64_t arena_bytes;
  int64_t reduced_bytes; // the first ones of the arena, which take part in sums
  int64_t gather_bytes;  // most that a rank gives to communicator::gather
  int64_t micro_batches; // calls of `add` per step
  communication_kind kind;
};

class gradient_sum {
public:
  // Makes the gradients arena, in memory that other ranks of this host can see
  // where possible, and an accumulator for the part of the gradients that this rank
  // sums, where steps have several micro-batches. Collective; throws `failure`.
  gradient_sum(communicator &ranks, arena_set &arenas, const gradient_request &request);
  ~gradient_sum();
  gradient_sum(const gradient_sum &) = delete;
  gradient_sum &operator=(const gradient_sum &) = delete;

  char *gradients() const { return gradients_; }
  bool uses_shared_memory() const { return shares_memory_; }
  int64_t accumulator_bytes() const { return accumulator_bytes_; }

  // Adds the gradients arenas of all ranks in rank order to the accumulators:
  // micro-batch j of rank r is summand j * ranks + r. The last call of a step
  // leaves the total in the gradients arena of every rank.
  void add(bool first, bool last);

private:
  struct transport;
  struct shared_transport;
  struct message_transport;
  bool share_memory(const gradient_request &request);

  communicator &ranks_;
  data_type type_;
  gradient_parts parts_;
  int64_t own_begin_, own_end_; // elements that this rank sums
  char *gradients_ = nullptr;
  char *accumulator_ = nullptr; // holds the own elements alone; addressed like the arena
  int64_t accumulator_bytes_ = 0;
  bool shares_memory_ = false;
  std::unique_ptr<transport> transport_; // none for a single rank
};

} // namespace trainc
