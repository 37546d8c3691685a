// SPDX-License-Identifier: Apache-2.0
//
// The network of the cut (recompute_cut.h): what lies on the sink's side must be at hand in the
// backward pass.
#include "passes/planning/recompute_cut.h"
#include "passes/planning/max_flow.h"

#include <algorithm>

namespace trainc::planning {

// By how much the last operation is dearer than the first: enough to tell equal layers apart,
// too little to change the order of different ones.
constexpr double preferenceForEarly = 0.05;
// Capacities are in parts of a byte, so that cheap operations at high prices are not free.
constexpr double partsOfByte = 16;
constexpr int64_t dearest = int64_t(1) << 52; // of what is possible: sums stay below `unlimited`

std::vector<bool> repeatedOperations(const ForwardGraph &graph, double price,
                                     const std::vector<bool> &held) {
  const int operations = int(graph.operations.size()), values = int(graph.values.size());
  const int source = operations + values, sink = source + 1;
  MaxFlow network(sink + 1, source, sink);
  for (int o = 0; o < operations; ++o) {
    const ForwardOperation &operation = graph.operations[o];
    double tilt = 1 + preferenceForEarly * o / operations;
    // What takes no time is repeated where that saves anything, and at a price of 0 nothing is.
    double time = price > 0 ? tilt * operation.time / price * partsOfByte : double(dearest);
    int64_t repeated = std::max<int64_t>(1, int64_t(std::min(time, double(dearest))));
    network.addEdge(source, o,
                    !operation.isRepeatable ? MaxFlow::unlimited
                    : operation.isForced    ? 0
                                            : repeated);
    for (int v : operation.makes) {
      const ForwardValue &value = graph.values[v];
      const bool isFree = value.isKeptAnyway || (!held.empty() && held[v]);
      int64_t kept = isFree ? 0 : int64_t(double(value.bytes) * partsOfByte);
      bool isOpen = value.mayBeKept && !(operation.isForced && !value.isKeptAnyway);
      network.addEdge(o, operations + v, isOpen ? kept : MaxFlow::unlimited);
    }
    for (int v : operation.reads)
      network.addEdge(operations + v, o, MaxFlow::unlimited);
  }
  for (int v = 0; v < values; ++v)
    if (graph.values[v].isNeeded)
      network.addEdge(operations + v, sink, MaxFlow::unlimited);
  network.run();
  std::vector<bool> side = network.sinkSide();
  return {side.begin(), side.begin() + operations};
}

} // namespace trainc::planning
