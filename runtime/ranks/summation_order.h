// SPDX-License-Identifier: Apache-2.0
//
// The order in which the gradients of a step's micro-batches are added: pairwise, along the binary
// tree over their numbers, whose leaves after the last are missing. A rank takes neighbours
// (micro-batch j of rank r is number r * micro_batches + j), so what it can add alone is one node
// of the tree where both numbers are powers of two, and a few otherwise; ranks exchange nodes, once
// a step, and the bits are those of one rank that took all. While a rank adds, nodes wait in
// accumulators: log2(micro_batches) rounded up at most where a rank's numbers begin at whole
// nodes, as with powers of two, and less than twice that otherwise.
//
// Or each rank adds its own in turn to one accumulator, and the ranks' sums are added pairwise
// (accumulation::running).
#pragma once

#include "runtime/accumulation.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainc {

// Most sums that wait for others while arrays are added in this order: one of each level of the
// tree, of up to 2^47 micro-batches.
constexpr int deepest_sum = 48;

constexpr int in_gradients = -1; // in place of an accumulator's number: in the gradients arena

// A sum that is held in one place, and how often the two last sums are added once it is there.
struct addend {
  int rank;
  int accumulator;
  int additions;
};

struct summation {
  std::vector<addend> addends; // all additions leave one sum
  int target;                  // where it goes: an accumulator
  bool moves() const { return addends.size() > 1 || addends[0].accumulator != target; }
  // Nothing is added, and what the gradients arena has goes to an accumulator.
  bool only_waits() const { return addends.size() == 1 && moves(); }
};

// Which sums the ranks of a step exchange: nodes, as few as there can be; or, where that costs
// nothing more, what a rank has before it adds its last micro-batch, which the exchange does then.
enum class exchanged_sums { nodes, unadded };

class summation_order {
public:
  // For rank `rank` of `ranks`.
  summation_order(int rank, int ranks, int64_t micro_batches, exchanged_sums exchanged,
                  accumulation how);

  // What the rank adds by itself once the gradients arena has micro-batch j.
  const summation &own(int64_t micro_batch) const { return own_[static_cast<size_t>(micro_batch)]; }
  // The step's total from what all ranks have then, in rank order; the sums of a rank are
  // neighbours, the last one is in its gradients arena.
  const std::vector<addend> &exchange() const { return exchange_; }
  // Accumulators of a rank, the most that any needs.
  int accumulators() const { return accumulators_; }

private:
  void add_pairwise(int rank, int ranks, int64_t micro_batches, bool adds_last);
  void add_in_turn(int rank, int ranks, int64_t micro_batches, bool adds_last);

  std::vector<summation> own_;
  std::vector<addend> exchange_;
  int accumulators_ = 0;
};

// These additions where ranks take micro-batches in turn (micro-batch j of rank r is number
// j * ranks + r) and add each round of them at once: neighbours then, so what waits is as much as
// for one rank, and not as much for each. Or the sum of each round, which is pairwise, is added to
// one accumulator.
class summation_rounds {
public:
  summation_rounds(int ranks, int64_t micro_batches, accumulation how);

  // What is added, one sum after the other, once all ranks' gradients arenas have their
  // micro-batch j; after the last one accumulator 0 has the step's total. Accumulators have no
  // rank.
  const std::vector<summation> &round(int64_t micro_batch) const {
    return rounds_[static_cast<size_t>(micro_batch)];
  }
  int accumulators() const { return accumulators_; } // at least one

private:
  void add_pairwise(int ranks, int64_t micro_batches);
  void add_in_turn(int ranks, int64_t micro_batches);

  std::vector<std::vector<summation>> rounds_;
  int accumulators_ = 1;
};

} // namespace trainc
