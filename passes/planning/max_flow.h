// SPDX-License-Identifier: Apache-2.0
//
// Maximum flow, and the minimum cut that it proves. Dinic, "Algorithm for solution of a problem of
// maximum flow in a network with power estimation" (1970): levels by breadth-first search, then a
// blocking flow along them, until the sink is out of reach.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

class MaxFlow {
public:
  /// A capacity that no sum of others reaches.
  static constexpr int64_t unlimited = INT64_MAX / 4;

  MaxFlow(int nodes, int source, int sink) : source(source), sink(sink), first(nodes, -1) {}

  void addEdge(int from, int to, int64_t capacity);

  /// The most that flows from source to sink; `unlimited` or more where no cut is below it.
  int64_t run();

  /// After run: the nodes on the sink's side of the cut that leaves it fewest.
  std::vector<bool> sinkSide() const;

private:
  struct Edge {
    int to, next;
    int64_t left; // capacity
  };

  bool findLevels();
  int64_t pushOnePath();

  int source, sink;
  std::vector<int> first;  // by node: its edges are a list
  std::vector<Edge> edges; // 2 i and 2 i + 1 are each other's reverse
  std::vector<int> levels, nextEdge;
};

} // namespace trainc::planning
