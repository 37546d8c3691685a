// SPDX-License-Identifier: Apache-2.0
//
// Sums over program order, and shortest paths from border to border (segments.h).
#include "passes/planning/segments.h"

#include <algorithm>
#include <limits>

namespace trainc::planning {
namespace {

// A place is narrow where its bytes and those of wider ones before and after it differ by at least
// this part of the widest of all.
constexpr int64_t differences = 32;
// Bounds of what a segment may need fall by this.
constexpr double boundsFall = 1.5;

/// Program order by numbers: place p lies before operation p.
class Places {
public:
  explicit Places(const ForwardGraph &graph) : graph(graph) {
    const int operations = int(graph.operations.size());
    makers.resize(graph.values.size());
    lastReaders.resize(graph.values.size());
    for (int o = 0; o < operations; ++o) {
      for (int v : graph.operations[o].makes)
        makers[v] = lastReaders[v] = o;
      for (int v : graph.operations[o].reads)
        lastReaders[v] = o;
    }
    // First by how much each number differs from that of the place before.
    crossing.resize(operations + 1);
    needed.resize(operations + 1);
    barriers.resize(operations + 1);
    for (int v = 0; v < int(graph.values.size()); ++v) {
      const ForwardValue &value = graph.values[v];
      if (value.isKeptAnyway)
        continue;
      const int begin = makers[v] + 1, end = lastReaders[v] + 1;
      crossing[begin] += value.bytes;
      crossing[end] -= value.bytes;
      barriers[begin] += !value.mayBeKept;
      barriers[end] -= !value.mayBeKept;
      needed[begin] += value.isNeeded ? value.bytes : 0;
    }
    for (int p = 1; p <= operations; ++p) {
      crossing[p] += crossing[p - 1];
      needed[p] += needed[p - 1];
      barriers[p] += barriers[p - 1];
    }
  }

  int end() const { return int(crossing.size()) - 1; }
  int64_t crossingAt(int place) const { return crossing[place]; }
  /// What the backward pass needs of the operations from one place to another.
  int64_t neededBetween(int first, int last) const { return needed[last] - needed[first]; }
  /// The places are in rising order.
  bool crossesOneOf(const std::vector<int> &borders, int value) const {
    auto next = std::upper_bound(borders.begin(), borders.end(), makers[value]);
    return next != borders.end() && *next <= lastReaders[value] &&
           !graph.values[value].isKeptAnyway;
  }
  int makerOf(int value) const { return makers[value]; }

  /// The places of fewest bytes between wider ones.
  std::vector<int> narrow() const {
    const int64_t difference =
        std::max<int64_t>(1, *std::max_element(crossing.begin(), crossing.end()) / differences);
    std::vector<int> found;
    int64_t widest = 0; // after the last one found
    int best = -1;
    for (int p = 1; p < end(); ++p) {
      if (best >= 0 && crossing[p] >= crossing[best] + difference) {
        found.push_back(best);
        best = -1;
        widest = 0;
      }
      widest = std::max(widest, crossing[p]);
      if (barriers[p] == 0 && crossing[p] + difference <= widest &&
          (best < 0 || crossing[p] < crossing[best]))
        best = p;
    }
    return found;
  }

private:
  const ForwardGraph &graph;
  std::vector<int> makers, lastReaders;  // of values; without a reader it is the maker
  std::vector<int64_t> crossing, needed; // by place; needed: of all operations before it
  std::vector<int> barriers;             // values that cross it and cannot be kept
};

/// The narrow places of least bytes in all with which no segment needs more than `bound`;
/// none where there are no such.
std::vector<int> bordersWithin(const Places &places, const std::vector<int> &narrow,
                               int64_t bound) {
  constexpr int64_t never = std::numeric_limits<int64_t>::max();
  std::vector<int> stops = {0}; // the beginning, the narrow places, the end
  stops.insert(stops.end(), narrow.begin(), narrow.end());
  stops.push_back(places.end());
  const int last = int(stops.size()) - 1;
  std::vector<int64_t> least(stops.size(), never); // bytes of borders up to the stop
  std::vector<int> before(stops.size(), 0);
  least[0] = 0;
  for (int i = 1; i <= last; ++i) {
    const int64_t own = i < last ? places.crossingAt(stops[i]) : 0;
    for (int j = i - 1; j >= 0 && places.neededBetween(stops[j], stops[i]) <= bound; --j)
      if (least[j] != never && least[j] + own < least[i]) {
        least[i] = least[j] + own;
        before[i] = j;
      }
  }
  std::vector<int> borders;
  if (least[last] != never)
    for (int i = before[last]; i > 0; i = before[i])
      borders.push_back(stops[i]);
  std::reverse(borders.begin(), borders.end());
  return borders;
}

Segments describe(const Places &places, std::vector<int> borders, const ForwardGraph &graph) {
  Segments segments{std::move(borders)};
  int begin = 0;
  for (int i = 0; i <= int(segments.begins.size()); ++i) {
    const int end = i < int(segments.begins.size()) ? segments.begins[i] : places.end();
    segments.innerBytes = std::max(segments.innerBytes, places.neededBetween(begin, end));
    begin = end;
  }
  for (int v = 0; v < int(graph.values.size()); ++v)
    if (places.crossesOneOf(segments.begins, v))
      segments.borderBytes += graph.values[v].bytes;
  return segments;
}

} // namespace

std::vector<Segments> narrowSegments(const ForwardGraph &graph) {
  std::vector<Segments> ways;
  if (graph.operations.empty())
    return ways;
  const Places places(graph);
  const std::vector<int> narrow = places.narrow();
  for (double bound = double(places.neededBetween(0, places.end())) / boundsFall; bound >= 1;
       bound /= boundsFall) {
    std::vector<int> borders = bordersWithin(places, narrow, int64_t(bound));
    if (borders.empty())
      break;
    if (ways.empty() || ways.back().begins != borders)
      ways.push_back(describe(places, std::move(borders), graph));
  }
  return ways;
}

std::vector<bool> heldBy(const Segments &segments, const ForwardGraph &graph) {
  std::vector<bool> held(graph.values.size(), false);
  if (segments.begins.empty())
    return held;
  const Places places(graph);
  for (int v = 0; v < int(held.size()); ++v)
    held[v] =
        places.makerOf(v) >= segments.begins.back() || places.crossesOneOf(segments.begins, v);
  return held;
}

} // namespace trainc::planning
