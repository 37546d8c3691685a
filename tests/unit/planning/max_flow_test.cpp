// SPDX-License-Identifier: Apache-2.0
//
// Maximum flow against every cut of small networks.
#include "passes/planning/max_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

using trainc::planning::MaxFlow;

namespace {

struct Network {
  int nodes; // the first is the source, the last the sink
  std::vector<std::tuple<int, int, int64_t>> edges;

  int64_t across(const std::vector<bool> &sinkSide) const {
    int64_t sum = 0;
    for (auto [from, to, capacity] : edges)
      if (!sinkSide[from] && sinkSide[to])
        sum += capacity;
    return sum;
  }
  std::pair<int64_t, int> leastCut() const { // and the fewest nodes on the sink's side of one
    std::pair<int64_t, int> least{INT64_MAX, 0};
    for (int set = 0; set < 1 << (nodes - 2); ++set) {
      std::vector<bool> side(nodes, false);
      side[nodes - 1] = true;
      for (int n = 0; n < nodes - 2; ++n)
        side[n + 1] = set >> n & 1;
      least = std::min(least, {across(side), int(std::count(side.begin(), side.end(), true))});
    }
    return least;
  }
};

Network randomNetwork(std::mt19937 &random) {
  Network network{int(3 + random() % 7), {}};
  for (int from = 0; from < network.nodes; ++from)
    for (int to = 0; to < network.nodes; ++to)
      if (from != to && random() % 3 == 0)
        network.edges.push_back({from, to, int64_t(random() % 10)});
  return network;
}

TEST(MaxFlow, FindsTheLeastCutWithTheSmallestSinkSide) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Network network = randomNetwork(random);
    MaxFlow flow(network.nodes, 0, network.nodes - 1);
    for (auto [from, to, capacity] : network.edges)
      flow.addEdge(from, to, capacity);
    auto [least, nodes] = network.leastCut();
    ASSERT_EQ(flow.run(), least) << "round " << round;
    std::vector<bool> side = flow.sinkSide();
    EXPECT_EQ(network.across(side), least) << "round " << round;
    EXPECT_EQ(std::count(side.begin(), side.end(), true), nodes) << "round " << round;
  }
}

TEST(MaxFlow, EndsWhereNoCutIsFinite) {
  MaxFlow flow(3, 0, 2);
  flow.addEdge(0, 1, MaxFlow::unlimited);
  flow.addEdge(1, 2, MaxFlow::unlimited);
  EXPECT_GE(flow.run(), MaxFlow::unlimited);
}

TEST(MaxFlow, FollowsLongPaths) {
  constexpr int nodes = 100000;
  MaxFlow flow(nodes, 0, nodes - 1);
  for (int n = 0; n + 1 < nodes; ++n)
    flow.addEdge(n, n + 1, n == 500 ? 3 : 5);
  EXPECT_EQ(flow.run(), 3);
}

} // namespace
