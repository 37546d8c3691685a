// SPDX-License-Identifier: Apache-2.0
//
// Greedy placement with several orders and a bounded improvement (memory_plan.h).
#include "passes/planning/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

namespace trainc::planning {
namespace {

constexpr int64_t orderBudget = 100'000'000; // comparisons: some tenths of a second
constexpr int64_t searchBudget = 20'000'000;

enum class Fit { lowest, best };

class Placement {
public:
  explicit Placement(const std::vector<Buffer> &buffers) : buffers(buffers) {
    for (const Buffer &buffer : buffers)
      sizes.push_back(alignedBytes(buffer.bytes));
  }

  MemoryPlan place(const std::vector<int> &order, Fit fit) {
    MemoryPlan plan;
    plan.offsets.assign(buffers.size(), 0);
    std::vector<int> placed; // by offset
    placed.reserve(order.size());
    for (int b : order) {
      int64_t offset = find(b, placed, plan.offsets, fit);
      plan.offsets[b] = offset;
      plan.bytes = std::max(plan.bytes, offset + sizes[b]);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), b,
                           [&](int x, int y) { return plan.offsets[x] < plan.offsets[y]; }),
          b);
    }
    return plan;
  }

  int64_t size(int b) const { return sizes[b]; }
  bool together(int a, int b) const {
    return buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
  }

private:
  int64_t find(int b, const std::vector<int> &placed, const std::vector<int64_t> &offsets,
               Fit fit) const {
    int64_t top = 0, best = -1, bestGap = std::numeric_limits<int64_t>::max();
    for (int other : placed) {
      if (!together(b, other))
        continue;
      int64_t gap = offsets[other] - top;
      if (gap >= sizes[b] && gap < bestGap) {
        if (fit == Fit::lowest)
          return top;
        best = top;
        bestGap = gap;
      }
      top = std::max(top, offsets[other] + sizes[other]);
    }
    return best >= 0 ? best : top;
  }

  const std::vector<Buffer> &buffers;
  std::vector<int64_t> sizes;
};

/// Free ranges of an arena without an end.
class FreeRanges {
public:
  int64_t take(int64_t bytes, Fit fit) {
    auto range = ranges.begin();
    if (fit == Fit::lowest) {
      while (range != ranges.end() && range->second < bytes)
        ++range;
    } else {
      auto tightest = bySize.lower_bound({bytes, 0});
      range = tightest == bySize.end() ? ranges.end() : ranges.find(tightest->second);
    }
    if (range == ranges.end()) {
      top += bytes;
      return top - bytes;
    }
    auto [offset, size] = *range;
    erase(range);
    if (size > bytes)
      insert(offset + bytes, size - bytes);
    return offset;
  }

  void giveBack(int64_t offset, int64_t bytes) {
    auto next = ranges.lower_bound(offset);
    if (next != ranges.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != ranges.begin())
      if (auto before = std::prev(next); before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        erase(before);
      }
    if (offset + bytes == top)
      top = offset;
    else
      insert(offset, bytes);
  }

private:
  using Ranges = std::map<int64_t, int64_t>; // offset, bytes; none touch, none reaches the top

  void insert(int64_t offset, int64_t bytes) {
    ranges[offset] = bytes;
    bySize.insert({bytes, offset});
  }
  Ranges::iterator erase(Ranges::iterator range) {
    bySize.erase({range->second, range->first});
    return ranges.erase(range);
  }

  Ranges ranges;
  std::set<std::pair<int64_t, int64_t>> bySize;
  int64_t top = 0;
};

/// What Placement gives for an order by the first step (backwards: by the last, latest first),
/// without looking at every pair: what the scan has passed is free again.
MemoryPlan scan(const std::vector<Buffer> &buffers, const std::vector<int> &order, bool backwards,
                Fit fit) {
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  FreeRanges free;
  auto begin = [&](int b) { return backwards ? -buffers[b].last : buffers[b].first; };
  using Alive = std::pair<int, int>; // end, buffer
  std::priority_queue<Alive, std::vector<Alive>, std::greater<Alive>> alive;
  for (int b : order) {
    for (; !alive.empty() && alive.top().first < begin(b); alive.pop())
      free.giveBack(plan.offsets[alive.top().second],
                    alignedBytes(buffers[alive.top().second].bytes));
    int64_t bytes = alignedBytes(buffers[b].bytes);
    plan.offsets[b] = free.take(bytes, fit);
    plan.bytes = std::max(plan.bytes, plan.offsets[b] + bytes);
    alive.push({backwards ? -buffers[b].first : buffers[b].last, b});
  }
  return plan;
}

using Key = std::tuple<int64_t, int64_t, int64_t>;

struct Order {
  enum class Scan { none, forwards, backwards };
  Scan scan;
  Key (*key)(const Buffer &buffer);

  std::vector<int> of(const std::vector<Buffer> &buffers) const {
    std::vector<std::pair<Key, int>> keyed;
    keyed.reserve(buffers.size());
    for (size_t b = 0; b < buffers.size(); ++b)
      keyed.push_back({key(buffers[b]), int(b)});
    std::sort(keyed.begin(), keyed.end());
    std::vector<int> result;
    result.reserve(keyed.size());
    for (const auto &[key, buffer] : keyed)
      result.push_back(buffer);
    return result;
  }
};

int64_t length(const Buffer &b) { return int64_t{b.last} - b.first + 1; }

const Order orders[] = {
    {Order::Scan::none,
     [](const Buffer &b) {
       return Key{-b.bytes, -length(b), b.first};
     }},
    {Order::Scan::none,
     [](const Buffer &b) {
       return Key{-b.bytes * length(b), -b.bytes, b.first};
     }},
    {Order::Scan::none,
     [](const Buffer &b) {
       return Key{-length(b), -b.bytes, b.first};
     }},
    {Order::Scan::forwards,
     [](const Buffer &b) {
       return Key{b.first, -b.bytes, -length(b)};
     }},
    {Order::Scan::forwards,
     [](const Buffer &b) {
       return Key{b.first, -length(b), -b.bytes};
     }},
    {Order::Scan::backwards,
     [](const Buffer &b) {
       return Key{-b.last, -b.bytes, b.first};
     }},
};

} // namespace

std::pair<int64_t, int> peakOf(const std::vector<Buffer> &buffers) {
  int steps = 0;
  for (const Buffer &buffer : buffers)
    steps = std::max(steps, buffer.last + 1);
  std::vector<int64_t> change(steps + 1, 0);
  for (const Buffer &buffer : buffers) {
    change[buffer.first] += alignedBytes(buffer.bytes);
    change[buffer.last + 1] -= alignedBytes(buffer.bytes);
  }
  int64_t live = 0, most = 0;
  int at = 0;
  for (int step = 0; step < steps; ++step) {
    live += change[step];
    if (live > most) {
      most = live;
      at = step;
    }
  }
  return {most, at};
}

MemoryPlan planMemory(const std::vector<Buffer> &buffers) {
  int64_t lowerBound = peakOf(buffers).first;
  Placement placement(buffers);
  MemoryPlan best;
  best.bytes = std::numeric_limits<int64_t>::max();
  std::vector<int> bestOrder;
  Fit bestFit = Fit::lowest;
  // Placement compares every pair: with very many buffers only the first orders, and the scans.
  int64_t pairs = int64_t(buffers.size()) * int64_t(buffers.size()), compared = 0;
  for (const Order &order : orders) {
    bool scans = order.scan != Order::Scan::none;
    if (best.bytes <= lowerBound || (!scans && compared + pairs > orderBudget))
      continue;
    std::vector<int> sequence = order.of(buffers);
    for (Fit fit : {Fit::lowest, Fit::best}) {
      compared += scans ? 0 : pairs;
      if (best.bytes <= lowerBound || compared > orderBudget)
        break;
      bool backwards = order.scan == Order::Scan::backwards;
      MemoryPlan plan =
          scans ? scan(buffers, sequence, backwards, fit) : placement.place(sequence, fit);
      if (plan.bytes < best.bytes) {
        best = std::move(plan);
        bestOrder = sequence;
        bestFit = fit;
      }
    }
  }
  // The buffers that reach the top go first, one after the other.
  int64_t trials = pairs > searchBudget
                       ? 0
                       : std::min<int64_t>(300, searchBudget / std::max<int64_t>(1, pairs) + 1);
  std::vector<int> order = bestOrder;
  MemoryPlan current = best;
  for (int64_t trial = 0; trial < trials && best.bytes > lowerBound; ++trial) {
    auto top = std::find_if(order.begin(), order.end(), [&](int b) {
      return current.offsets[b] + placement.size(b) == current.bytes;
    });
    std::rotate(order.begin(), top, top + 1);
    current = placement.place(order, bestFit);
    if (current.bytes < best.bytes)
      best = current;
  }
  best.lowerBound = lowerBound;
  if (buffers.empty())
    best.bytes = 0;
  return best;
}

} // namespace trainc::planning
