// SPDX-License-Identifier: Apache-2.0
//
// Gradients summed over micro-batches and ranks: micro-batch j of rank r is summand
// j * ranks + r, whatever the number of ranks. NCCL's own reductions choose an order by the number
// of ranks and the machine; so the ranks exchange pieces of their parts, each adds up its own part
// in rank order, and the totals are sent back. All of it is queued on the compute stream and can be
// recorded in a graph.
#pragma once

#include "runtime/communicator.h"
#include "runtime/gradient_parts.h"
#include "runtime/program.h"

#include <cstddef>

struct ncclComm;

namespace trainc {

class gradient_sum {
public:
  static constexpr int64_t piece_bytes = 32 << 20; // from each rank; enough for full bandwidth

  gradient_sum(communicator &ranks, data_type type, int64_t reduced_bytes, int64_t micro_batches,
               int64_t largest_piece_bytes = piece_bytes);
  ~gradient_sum();
  gradient_sum(const gradient_sum &) = delete;
  gradient_sum &operator=(const gradient_sum &) = delete;

  // What lies on the device besides the gradients.
  int64_t accumulator_bytes() const;
  int64_t exchange_bytes() const;

  // Joins the other ranks, on the device chosen before. Collective. Throws `failure`
  // (exit_machine).
  void start();
  void place(char *gradients, char *accumulator, char *received);

  // Queues the sum of one micro-batch. The last of a step leaves the total in the
  // gradients of every rank.
  void queue(bool first, bool last);
  // Waits for queued work. Throws `failure` if NCCL met an error meanwhile: work that
  // waits for a rank which is gone never ends.
  void finish() const;

private:
  void exchange_parts(int64_t done);
  void publish_totals(int64_t done);
  // Of the piece that begins `done` elements behind the begin of a rank's part.
  char *gradients_at(int rank, int64_t done) const;
  size_t piece_size(int rank, int64_t done) const;

  communicator &ranks_;
  data_type type_;
  gradient_parts parts_;
  int64_t piece_elements_;
  bool accumulates_;
  ncclComm *others_ = nullptr;
  char *gradients_ = nullptr, *accumulator_ = nullptr, *received_ = nullptr;
};

} // namespace trainc
