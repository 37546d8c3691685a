// SPDX-License-Identifier: Apache-2.0
#include "runtime/ranks/summation_order.h"

#include <algorithm>

namespace trainc {
namespace {

// The sum of numbers [index << level, (index + 1) << level), those after the last left out.
struct tree_node {
  int level;
  int64_t index;
};

// Sums in the order of their numbers. No neighbours among them can be added yet.
class waiting_sums {
public:
  explicit waiting_sums(int64_t summands) : summands_(summands) {}

  const std::vector<tree_node> &nodes() const { return nodes_; }

  // Puts a sum after the others; returns how often the two last ones are added then.
  int push(tree_node node) {
    nodes_.push_back(node);
    int additions = 0;
    for (;;) {
      tree_node &last = nodes_.back();
      const bool is_right = last.index % 2 == 1;
      if (!is_right && last.index == 0 && end_of(last) >= summands_)
        return additions; // all
      if (!is_right && end_of(last) < summands_)
        return additions; // its other half comes later
      if (is_right) {
        if (nodes_.size() < 2 || nodes_[nodes_.size() - 2].level != last.level)
          return additions; // another rank has its other half
        nodes_.pop_back();
        ++additions;
      }
      tree_node &parent = nodes_.back();
      parent = {parent.level + 1, parent.index / 2};
    }
  }

private:
  static int64_t end_of(const tree_node &node) { return (node.index + 1) << node.level; }

  int64_t summands_;
  std::vector<tree_node> nodes_;
};

// Adds the gradients and the newest of `waiting` accumulators. An addition's two sides may change
// places, so the newest sums come first.
summation own_sum(int rank, int waiting, int additions, bool is_last) {
  summation sum = {{{rank, in_gradients, 0}}, is_last ? in_gradients : waiting - additions};
  for (int i = 1; i <= additions; ++i)
    sum.addends.push_back({rank, waiting - i, 1});
  return sum;
}

} // namespace

summation_order::summation_order(int rank, int ranks, int64_t micro_batches,
                                 exchanged_sums exchanged, accumulation how) {
  const bool adds_last = exchanged == exchanged_sums::nodes || ranks == 1;
  if (how == accumulation::running)
    add_in_turn(rank, ranks, micro_batches, adds_last);
  else
    add_pairwise(rank, ranks, micro_batches, adds_last);
}

void summation_order::add_pairwise(int rank, int ranks, int64_t micro_batches, bool adds_last) {
  const int64_t summands = ranks * micro_batches;
  waiting_sums all(summands);
  for (int r = 0; r < ranks; ++r) {
    waiting_sums own(summands);
    std::vector<tree_node> last_sums;
    for (int64_t j = 0; j < micro_batches; ++j) {
      const bool is_last = j == micro_batches - 1;
      const tree_node next = {0, r * micro_batches + j};
      const auto before = static_cast<int>(own.nodes().size());
      if (is_last) {
        last_sums = own.nodes();
        last_sums.push_back(next);
      }
      const int additions = own.push(next);
      if (!is_last)
        accumulators_ = std::max(accumulators_, static_cast<int>(own.nodes().size()));
      if (r == rank)
        own_.push_back(own_sum(r, before, is_last && !adds_last ? 0 : additions, is_last));
    }
    if (adds_last)
      last_sums = own.nodes();
    const auto count = static_cast<int>(last_sums.size());
    for (int i = 0; i < count; ++i) {
      const int place = i == count - 1 ? in_gradients : i;
      exchange_.push_back({r, place, all.push(last_sums[static_cast<size_t>(i)])});
    }
  }
}

void summation_order::add_in_turn(int rank, int ranks, int64_t micro_batches, bool adds_last) {
  accumulators_ = micro_batches > 1 ? 1 : 0;
  for (int64_t j = 0; j < micro_batches; ++j) {
    const bool is_last = j == micro_batches - 1;
    const int waiting = j > 0 ? 1 : 0;
    own_.push_back(own_sum(rank, waiting, is_last && !adds_last ? 0 : waiting, is_last));
  }
  waiting_sums all(ranks);
  for (int r = 0; r < ranks; ++r) {
    const int own_additions = adds_last ? 0 : accumulators_;
    if (own_additions > 0)
      exchange_.push_back({r, 0, 0});
    exchange_.push_back({r, in_gradients, own_additions + all.push({0, r})});
  }
}

static constexpr int of_no_rank = -1;

summation_rounds::summation_rounds(int ranks, int64_t micro_batches, accumulation how) {
  if (how == accumulation::running)
    add_in_turn(ranks, micro_batches);
  else
    add_pairwise(ranks, micro_batches);
}

void summation_rounds::add_in_turn(int ranks, int64_t micro_batches) {
  for (int64_t j = 0; j < micro_batches; ++j) {
    summation sum = {{}, 0};
    if (j > 0)
      sum.addends.push_back({of_no_rank, 0, 0});
    waiting_sums all(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      sum.addends.push_back({rank, in_gradients, all.push({0, rank})});
    sum.addends.back().additions += j > 0 ? 1 : 0;
    rounds_.push_back({sum});
  }
}

void summation_rounds::add_pairwise(int ranks, int64_t micro_batches) {
  waiting_sums all(ranks * micro_batches);
  for (int64_t j = 0; j < micro_batches; ++j) {
    std::vector<summation> sums; // of this round, by where they go
    sums.reserve(all.nodes().size() + static_cast<size_t>(ranks));
    for (int waiting = 0; waiting < static_cast<int>(all.nodes().size()); ++waiting)
      sums.push_back({{{of_no_rank, waiting, 0}}, waiting});
    for (int rank = 0; rank < ranks; ++rank) {
      const int additions = all.push({0, j * ranks + rank});
      sums.push_back({{{rank, in_gradients, additions}}, static_cast<int>(sums.size())});
      for (int i = 0; i < additions; ++i) {
        const std::vector<addend> last = std::move(sums.back().addends);
        sums.pop_back();
        sums.back().addends.insert(sums.back().addends.end(), last.begin(), last.end());
      }
    }
    accumulators_ = std::max(accumulators_, static_cast<int>(sums.size()));
    std::erase_if(sums, [](const summation &sum) { return !sum.moves(); });
    rounds_.push_back(std::move(sums));
  }
}

} // namespace trainc
