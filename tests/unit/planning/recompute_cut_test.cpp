// SPDX-License-Identifier: Apache-2.0
//
// What is computed again: against every choice in small graphs, and along the price.
#include "passes/planning/recompute_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

using namespace trainc::planning;

namespace {

/// Operation i makes value i.
ForwardGraph chain(const std::vector<std::pair<int64_t, double>> &bytesAndTime) {
  ForwardGraph graph;
  for (int i = 0; i < int(bytesAndTime.size()); ++i) {
    graph.values.push_back({bytesAndTime[i].first});
    ForwardOperation operation;
    if (i > 0)
      operation.reads = {i - 1};
    operation.makes = {i};
    operation.time = bytesAndTime[i].second;
    graph.operations.push_back(operation);
  }
  return graph;
}

using Repeated = std::vector<bool>;

TEST(RecomputeCut, KeepsTheSmallEndOfAChain) {
  // A product, a norm's statistic of it and an activation that the backward pass reads.
  ForwardGraph graph = chain({{1000, 1e6}, {10, 1000}, {1000, 100}});
  graph.values[2].isNeeded = true;
  EXPECT_EQ(repeatedOperations(graph, 1e-3), (Repeated{false, false, false}));
  EXPECT_EQ(repeatedOperations(graph, 1), (Repeated{false, false, true}));
  EXPECT_EQ(repeatedOperations(graph, 1e3), (Repeated{false, false, true}));
  EXPECT_EQ(repeatedOperations(graph, 1e6), (Repeated{true, true, true}));
}

TEST(RecomputeCut, MemoryThatIsTakenCannotBeKept) {
  ForwardGraph graph = chain({{1, 10}, {100, 10}, {100, 1}});
  graph.values[1].mayBeKept = false;
  graph.values[2].isNeeded = true;
  EXPECT_EQ(repeatedOperations(graph, 1e-6), (Repeated{false, false, false}));
  EXPECT_EQ(repeatedOperations(graph, 1), (Repeated{false, true, true}));
}

TEST(RecomputeCut, WhatLivesAnywayIsKeptForNothing) {
  ForwardGraph graph = chain({{100, 1}, {100, 1}});
  graph.values[0].isNeeded = graph.values[0].isKeptAnyway = true;
  graph.values[1].isNeeded = true;
  EXPECT_EQ(repeatedOperations(graph, 1e6), (Repeated{false, true}));
}

TEST(RecomputeCut, ForcedOperationsAreRepeatedAtAnyPrice) {
  ForwardGraph graph = chain({{100, 1e9}, {100, 1e9}, {100, 1e9}});
  graph.operations[1].isForced = true;
  graph.values[1].isNeeded = true;
  EXPECT_EQ(repeatedOperations(graph, 1e-6), (Repeated{false, true, false}));
}

TEST(RecomputeCut, EarlyOnesOfEqualOperationsComeFirst) {
  ForwardGraph graph = chain({{1, 1000}, {100, 1000}, {1, 1000}, {100, 1000}});
  graph.values[1].isNeeded = graph.values[3].isNeeded = true;
  EXPECT_EQ(repeatedOperations(graph, 10.3), (Repeated{false, true, false, false}));
}

/// Bytes kept and time of a choice; nothing where what is needed cannot be had.
std::optional<double> costOf(const ForwardGraph &graph, const Repeated &repeated, double price) {
  std::vector<bool> wanted(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v)
    wanted[v] = graph.values[v].isNeeded;
  double cost = 0;
  for (size_t o = 0; o < graph.operations.size(); ++o)
    if (repeated[o]) {
      if (!graph.operations[o].isRepeatable)
        return std::nullopt;
      cost += graph.operations[o].time * (1 + 0.05 * double(o) / double(graph.operations.size())) /
              price;
      for (int v : graph.operations[o].reads)
        wanted[v] = true;
    }
  for (size_t o = 0; o < graph.operations.size(); ++o)
    for (int v : graph.operations[o].makes)
      if (wanted[v] && !repeated[o]) {
        if (!graph.values[v].mayBeKept)
          return std::nullopt;
        cost += graph.values[v].isKeptAnyway ? 0 : double(graph.values[v].bytes);
      }
  return cost;
}

ForwardGraph randomGraph(std::mt19937 &random) {
  ForwardGraph graph;
  int operations = int(1 + random() % 9);
  for (int o = 0; o < operations; ++o) {
    ForwardOperation operation;
    for (int v = 0; v < int(graph.values.size()); ++v)
      if (random() % 3 == 0)
        operation.reads.push_back(v);
    for (int results = 1 + int(random() % 2); results > 0; --results) {
      operation.makes.push_back(int(graph.values.size()));
      graph.values.push_back(
          {int64_t(random() % 1000), random() % 2 == 0, random() % 8 != 0, random() % 8 == 0});
    }
    operation.time = double(random() % 5000);
    graph.operations.push_back(operation);
  }
  return graph;
}

TEST(RecomputeCut, NoChoiceIsCheaperAndPricesNest) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    ForwardGraph graph = randomGraph(random);
    Repeated before(graph.operations.size(), false);
    for (double price : {0.1, 1.0, 3.0, 10.0, 100.0}) {
      Repeated found = repeatedOperations(graph, price);
      std::optional<double> cost = costOf(graph, found, price);
      ASSERT_TRUE(cost) << "round " << round;
      for (int set = 0; set < 1 << graph.operations.size(); ++set) {
        Repeated other(graph.operations.size());
        for (size_t o = 0; o < other.size(); ++o)
          other[o] = set >> o & 1;
        std::optional<double> theirs = costOf(graph, other, price);
        if (theirs) { // capacities are rounded to parts of a byte
          ASSERT_LE(*cost, *theirs + 1) << "round " << round << " price " << price;
        }
      }
      for (size_t o = 0; o < found.size(); ++o)
        ASSERT_TRUE(found[o] || !before[o]) << "round " << round << " price " << price;
      before = found;
    }
  }
}

} // namespace
