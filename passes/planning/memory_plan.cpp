// SPDX-License-Identifier: Apache-2.0
//
// Greedy placement with several orders and a bounded improvement (memory_plan.h).
#include "passes/planning/memory_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace trainc::planning {
namespace {

constexpr int64_t searchBudget = 20'000'000; // comparisons: some ten milliseconds

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

std::vector<std::vector<int>> orders(const std::vector<Buffer> &buffers) {
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  auto length = [](const Buffer &b) { return int64_t{b.last} - b.first + 1; };
  const std::vector<std::function<Key(const Buffer &)>> keys = {
      [&](const Buffer &b) {
        return Key{-b.bytes, -length(b), b.first};
      },
      [&](const Buffer &b) {
        return Key{-b.bytes * length(b), -b.bytes, b.first};
      },
      [&](const Buffer &b) {
        return Key{-length(b), -b.bytes, b.first};
      },
      [&](const Buffer &b) {
        return Key{b.first, -b.bytes, -length(b)};
      },
      [&](const Buffer &b) {
        return Key{b.first, -length(b), -b.bytes};
      },
      [&](const Buffer &b) {
        return Key{-b.last, -b.bytes, b.first};
      },
  };
  std::vector<std::vector<int>> result;
  for (const auto &key : keys) {
    std::vector<int> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return key(buffers[a]) < key(buffers[b]); });
    result.push_back(std::move(order));
  }
  return result;
}

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
  for (const std::vector<int> &order : orders(buffers))
    for (Fit fit : {Fit::lowest, Fit::best}) {
      if (best.bytes <= lowerBound)
        break;
      MemoryPlan plan = placement.place(order, fit);
      if (plan.bytes < best.bytes) {
        best = std::move(plan);
        bestOrder = order;
        bestFit = fit;
      }
    }
  // The buffers that reach the top go first, one after the other.
  int64_t count = std::max<int64_t>(1, int64_t(buffers.size()));
  int64_t trials = std::min<int64_t>(300, searchBudget / (count * count) + 1);
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
