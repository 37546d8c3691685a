// SPDX-License-Identifier: Apache-2.0
//
// The order of a step's additions, written out: the same for every number of ranks.
#include "runtime/ranks/summation_order.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <string>

namespace trainc {
namespace {

// A sum as text; its two sides may change places.
std::string sum_of(const std::string &a, const std::string &b) {
  return "(" + std::min(a, b) + "+" + std::max(a, b) + ")";
}

using places = std::map<int, std::string>; // what an accumulator holds, or the gradients

std::string add_up(const std::vector<addend> &addends, std::vector<places> &ranks) {
  std::vector<std::string> waiting;
  for (const addend &each : addends) {
    waiting.push_back(ranks[static_cast<size_t>(each.rank)].at(each.accumulator));
    for (int i = 0; i < each.additions; ++i) {
      std::string last = waiting.back();
      waiting.pop_back();
      waiting.back() = sum_of(waiting.back(), last);
    }
  }
  EXPECT_EQ(waiting.size(), 1u);
  return waiting.back();
}

std::string number(int64_t micro_batch) {
  return std::string(micro_batch < 10 ? "0" : "") + std::to_string(micro_batch);
}

// Of numbers [begin, begin + 2^level), those after the last left out.
std::string pairwise(int64_t begin, int level, int64_t summands) {
  const int64_t half = level == 0 ? 0 : int64_t{1} << (level - 1);
  if (level == 0)
    return number(begin);
  std::string left = pairwise(begin, level - 1, summands);
  return begin + half < summands ? sum_of(left, pairwise(begin + half, level - 1, summands)) : left;
}

std::string step_of(int ranks, int64_t micro_batches, exchanged_sums exchanged,
                    accumulation how = accumulation::pairwise) {
  std::vector<places> all(static_cast<size_t>(ranks));
  std::vector<addend> exchange;
  for (int rank = 0; rank < ranks; ++rank) {
    summation_order order(rank, ranks, micro_batches, exchanged, how);
    places &own = all[static_cast<size_t>(rank)];
    for (int64_t j = 0; j < micro_batches; ++j) {
      own[in_gradients] = number(rank * micro_batches + j);
      std::string sum = add_up(order.own(j).addends, all);
      EXPECT_LT(order.own(j).target, order.accumulators());
      own[order.own(j).target] = sum;
    }
    exchange = order.exchange();
  }
  return add_up(exchange, all);
}

TEST(SummationOrder, IsThatOfOneRank) {
  EXPECT_EQ(step_of(1, 1, exchanged_sums::nodes), "00");
  EXPECT_EQ(
      step_of(1, 7, exchanged_sums::nodes),
      sum_of(sum_of(sum_of("00", "01"), sum_of("02", "03")), sum_of(sum_of("04", "05"), "06")));
  for (int summands = 1; summands <= 40; ++summands)
    for (int ranks = 1; ranks <= summands; ++ranks) {
      if (summands % ranks != 0)
        continue;
      for (exchanged_sums exchanged : {exchanged_sums::nodes, exchanged_sums::unadded})
        EXPECT_EQ(step_of(ranks, summands / ranks, exchanged), pairwise(0, 6, summands))
            << ranks << " of " << summands;
    }
}

TEST(SummationOrder, TakesFewAccumulators) {
  auto accumulators = [](int ranks, int64_t micro_batches) {
    return summation_order(ranks - 1, ranks, micro_batches, exchanged_sums::nodes,
                           accumulation::pairwise)
        .accumulators();
  };
  auto exchanged = [](int ranks, int64_t micro_batches) {
    return summation_order(0, ranks, micro_batches, exchanged_sums::nodes, accumulation::pairwise)
        .exchange()
        .size();
  };
  for (int ranks : {1, 2, 4, 64}) {
    EXPECT_EQ(accumulators(ranks, 1), 0);
    EXPECT_EQ(accumulators(ranks, 2), 1);
    EXPECT_EQ(accumulators(ranks, 8), 3);
    EXPECT_EQ(accumulators(ranks, 64), 6);
    EXPECT_EQ(exchanged(ranks, 8), static_cast<size_t>(ranks)); // one sum of each
  }
  EXPECT_EQ(accumulators(1, 7), 2);
  EXPECT_EQ(exchanged(3, 4), 3u);
  EXPECT_EQ(exchanged(2, 3), 4u); // 0 and 1, 2; 3, 4 and 5
  EXPECT_LE(accumulators(3, 7), 6);
}

// Of numbers [begin, begin + count), in turn.
std::string running(int64_t begin, int64_t count) {
  std::string sum = number(begin);
  for (int64_t j = begin + 1; j < begin + count; ++j)
    sum = sum_of(sum, number(j));
  return sum;
}

// Of ranks [begin, begin + 2^level), each of which is a sum; those after the last left out.
std::string tree_of(const std::vector<std::string> &sums, size_t begin, int level) {
  if (level == 0)
    return sums[begin];
  const size_t middle = begin + (size_t{1} << (level - 1));
  const std::string left = tree_of(sums, begin, level - 1);
  return middle < sums.size() ? sum_of(left, tree_of(sums, middle, level - 1)) : left;
}

TEST(SummationOrder, InTurnAddsTheSumsOfRanksPairwise) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      std::vector<std::string> sums;
      for (int rank = 0; rank < ranks; ++rank)
        sums.push_back(running(rank * micro_batches, micro_batches));
      for (exchanged_sums exchanged : {exchanged_sums::nodes, exchanged_sums::unadded}) {
        EXPECT_EQ(step_of(ranks, micro_batches, exchanged, accumulation::running),
                  tree_of(sums, 0, 4))
            << ranks << " x " << micro_batches;
        const summation_order order(ranks - 1, ranks, micro_batches, exchanged,
                                    accumulation::running);
        EXPECT_EQ(order.accumulators(), micro_batches > 1 ? 1 : 0);
      }
    }
}

// What the accumulators hold once every round is added.
places rounds_of(int ranks, int64_t micro_batches, accumulation how = accumulation::pairwise) {
  const summation_rounds order(ranks, micro_batches, how);
  std::vector<places> all(static_cast<size_t>(ranks));
  places accumulators;
  for (int64_t j = 0; j < micro_batches; ++j) {
    for (int rank = 0; rank < ranks; ++rank)
      all[static_cast<size_t>(rank)][in_gradients] = number(j * ranks + rank);
    for (const summation &sum : order.round(j)) {
      for (places &rank : all) // of the sums before, too
        for (auto &[place, text] : accumulators)
          rank[place] = text;
      std::vector<addend> addends = sum.addends;
      for (addend &each : addends)
        each.rank = std::max(each.rank, 0);
      EXPECT_LT(sum.target, order.accumulators());
      accumulators[sum.target] = add_up(addends, all);
    }
  }
  return accumulators;
}

TEST(SummationRounds, AreThatOfOneRank) {
  for (int summands = 1; summands <= 40; ++summands)
    for (int ranks = 1; ranks <= summands; ++ranks) {
      if (summands % ranks != 0)
        continue;
      EXPECT_EQ(rounds_of(ranks, summands / ranks).at(0), pairwise(0, 6, summands))
          << ranks << " of " << summands;
    }
}

TEST(SummationRounds, InTurnAddTheSumOfEachRound) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
      std::string sum;
      for (int j = 0; j < micro_batches; ++j) {
        const std::string round = pairwise(j * ranks, 4, (j + 1) * ranks);
        sum = j == 0 ? round : sum_of(sum, round);
      }
      EXPECT_EQ(rounds_of(ranks, micro_batches, accumulation::running).at(0), sum)
          << ranks << " x " << micro_batches;
      EXPECT_EQ(summation_rounds(ranks, micro_batches, accumulation::running).accumulators(), 1);
    }
}

TEST(SummationRounds, TakeFewAccumulators) {
  auto accumulators = [](int ranks, int64_t micro_batches) {
    return summation_rounds(ranks, micro_batches, accumulation::pairwise).accumulators();
  };
  for (int ranks : {1, 2, 4, 64}) { // as many for all as for one
    EXPECT_EQ(accumulators(ranks, 1), 1);
    EXPECT_EQ(accumulators(ranks, 2), 1);
    EXPECT_EQ(accumulators(ranks, 8), 3);
    EXPECT_EQ(accumulators(ranks, 64), 6);
  }
  EXPECT_EQ(accumulators(3, 1), 1);
  EXPECT_EQ(accumulators(3, 2), 2); // 0 and 1, 2
  EXPECT_EQ(accumulators(3, 8), 4);
}

} // namespace
} // namespace trainc
