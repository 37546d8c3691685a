// SPDX-License-Identifier: Apache-2.0
//
// Dinic's algorithm without recursion: paths are as long as models are deep (max_flow.h).
#include "passes/planning/max_flow.h"

#include <algorithm>

namespace trainc::planning {

void MaxFlow::addEdge(int from, int to, int64_t capacity) {
  edges.push_back({to, first[from], capacity});
  first[from] = int(edges.size()) - 1;
  edges.push_back({from, first[to], 0});
  first[to] = int(edges.size()) - 1;
}

bool MaxFlow::findLevels() {
  levels.assign(first.size(), -1);
  levels[source] = 0;
  std::vector<int> reached{source};
  for (size_t i = 0; i < reached.size() && levels[sink] < 0; ++i)
    for (int e = first[reached[i]]; e >= 0; e = edges[e].next)
      if (edges[e].left > 0 && levels[edges[e].to] < 0) {
        levels[edges[e].to] = levels[reached[i]] + 1;
        reached.push_back(edges[e].to);
      }
  return levels[sink] >= 0;
}

/// Flow along one path of the levels; 0 where they have none left.
int64_t MaxFlow::pushOnePath() {
  std::vector<int> path; // edges
  int node = source;
  while (node != sink) {
    int &e = nextEdge[node];
    while (e >= 0 && (edges[e].left <= 0 || levels[edges[e].to] != levels[node] + 1))
      e = edges[e].next;
    if (e >= 0) {
      path.push_back(e);
      node = edges[e].to;
    } else if (path.empty()) {
      return 0;
    } else { // a dead end: back, and not there again
      node = edges[path.back() ^ 1].to;
      path.pop_back();
      nextEdge[node] = edges[nextEdge[node]].next;
    }
  }
  int64_t flow = unlimited;
  for (int e : path)
    flow = std::min(flow, edges[e].left);
  for (int e : path) {
    edges[e].left -= flow;
    edges[e ^ 1].left += flow;
  }
  return flow;
}

int64_t MaxFlow::run() {
  int64_t total = 0;
  while (total < unlimited && findLevels()) {
    nextEdge = first;
    while (int64_t flow = total < unlimited ? pushOnePath() : 0)
      total += flow;
  }
  return total;
}

std::vector<bool> MaxFlow::sinkSide() const {
  std::vector<bool> side(first.size(), false);
  side[sink] = true;
  std::vector<int> reached{sink};
  for (size_t i = 0; i < reached.size(); ++i)
    for (int e = first[reached[i]]; e >= 0; e = edges[e].next)
      if (edges[e ^ 1].left > 0 && !side[edges[e].to]) {
        side[edges[e].to] = true;
        reached.push_back(edges[e].to);
      }
  return side;
}

} // namespace trainc::planning
