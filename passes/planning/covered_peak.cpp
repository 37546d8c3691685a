// SPDX-License-Identifier: Apache-2.0
//
// Sweep over steps with a tree of covered ranges (covered_peak.h).
#include "passes/planning/covered_peak.h"

#include <algorithm>

namespace trainc::planning {
namespace {

/// Bytes covered by a changing set of ranges whose ends are among `bounds`.
class CoveredRanges {
public:
  explicit CoveredRanges(std::vector<int64_t> ends) : bounds(std::move(ends)) {
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    nodes.resize(4 * bounds.size());
  }

  /// Adds a range once more (`change` 1) or takes it away once (-1).
  void change(int64_t begin, int64_t end, int change) {
    if (begin < end)
      update(1, 0, bounds.size() - 1, indexOf(begin), indexOf(end), change);
  }
  int64_t covered() const { return nodes[1].covered; }

private:
  struct Node {
    int whole = 0; // ranges that cover all of the node
    int64_t covered = 0;
  };

  size_t indexOf(int64_t bound) const {
    return std::lower_bound(bounds.begin(), bounds.end(), bound) - bounds.begin();
  }

  // The node stands for bounds[low] to bounds[high].
  void update(size_t node, size_t low, size_t high, size_t begin, size_t end, int change) {
    Node &own = nodes[node];
    if (begin <= low && high <= end) {
      own.whole += change;
    } else {
      size_t middle = (low + high) / 2;
      if (begin < middle)
        update(2 * node, low, middle, begin, end, change);
      if (end > middle)
        update(2 * node + 1, middle, high, begin, end, change);
    }
    own.covered = own.whole > 0     ? bounds[high] - bounds[low]
                  : high - low == 1 ? 0
                                    : nodes[2 * node].covered + nodes[2 * node + 1].covered;
  }

  std::vector<int64_t> bounds;
  std::vector<Node> nodes;
};

} // namespace

std::pair<int64_t, int> coveredPeak(const std::vector<PlacedBuffer> &buffers) {
  std::vector<int64_t> bounds;
  int steps = 0;
  for (const PlacedBuffer &buffer : buffers) {
    bounds.push_back(buffer.offset);
    bounds.push_back(buffer.offset + buffer.bytes);
    steps = std::max(steps, buffer.last + 1);
  }
  if (buffers.empty())
    return {0, -1};
  std::vector<std::vector<const PlacedBuffer *>> begins(steps), ends(steps);
  for (const PlacedBuffer &buffer : buffers) {
    begins[buffer.first].push_back(&buffer);
    ends[buffer.last].push_back(&buffer);
  }
  CoveredRanges ranges(std::move(bounds));
  std::pair<int64_t, int> peak{0, -1};
  for (int step = 0; step < steps; ++step) {
    for (const PlacedBuffer *buffer : begins[step])
      ranges.change(buffer->offset, buffer->offset + buffer->bytes, 1);
    if (ranges.covered() > peak.first)
      peak = {ranges.covered(), step};
    for (const PlacedBuffer *buffer : ends[step])
      ranges.change(buffer->offset, buffer->offset + buffer->bytes, -1);
  }
  return peak;
}

} // namespace trainc::planning
