// SPDX-License-Identifier: Apache-2.0
//
// Joining nodes of a graph without closing cycles, and how far that has to look.
#include "passes/planning/acyclic_units.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace trainc::planning;

namespace {

using Sources = std::vector<std::vector<int>>;
constexpr int64_t noLimit = int64_t(1) << 40;

/// Whether joining would close a cycle, found by walking the whole graph.
bool closesCycle(const Sources &sources, const AcyclicUnits &units, int a, int b) {
  auto joined = [&](int node) {
    int unit = units.unitOf(node);
    return unit == b ? a : unit;
  };
  std::vector<std::set<int>> next(sources.size());
  for (size_t n = 0; n < sources.size(); ++n)
    for (int source : sources[n])
      if (joined(source) != joined(int(n)))
        next[joined(source)].insert(joined(int(n)));
  std::vector<int> waiting(sources.size(), 0), ready;
  for (const std::set<int> &targets : next)
    for (int target : targets)
      ++waiting[target];
  for (size_t u = 0; u < sources.size(); ++u)
    if (waiting[u] == 0)
      ready.push_back(int(u));
  size_t done = 0;
  for (; done < ready.size(); ++done)
    for (int target : next[ready[done]])
      if (--waiting[target] == 0)
        ready.push_back(target);
  return done != sources.size();
}

TEST(AcyclicUnits, NoPathThroughAThird) {
  Sources sources{{}, {0}, {0, 1}, {}};
  AcyclicUnits units(sources, noLimit);
  EXPECT_FALSE(units.join(0, 2)); // 1 lies between
  EXPECT_TRUE(units.join(0, 1));
  EXPECT_TRUE(units.join(2, 3));
  EXPECT_TRUE(units.join(2, 0));
  EXPECT_EQ(units.nodesOf(2), (std::vector<int>{0, 1, 2, 3}));
}

TEST(AcyclicUnits, AgreesWithWalkingTheGraph) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Sources sources(40);
    for (int n = 1; n < 40; ++n)
      for (unsigned i = random() % 3; i > 0; --i)
        sources[n].push_back(int(random() % unsigned(n)));
    AcyclicUnits units(sources, noLimit);
    for (int attempt = 0; attempt < 120; ++attempt) {
      int a = units.unitOf(int(random() % 40)), b = units.unitOf(int(random() % 40));
      if (a == b)
        continue;
      bool closes = closesCycle(sources, units, a, b);
      EXPECT_EQ(units.join(a, b), !closes) << "seed " << seed << " attempt " << attempt;
    }
  }
}

TEST(AcyclicUnits, LooksNoFurtherThanItMust) {
  // A chain joined in eights, and at its ends two branches that nobody else reads.
  const int count = 20000;
  Sources sources(count);
  for (int n = 1; n < count; ++n)
    sources[n] = {n - 1};
  sources.push_back({0});
  sources.push_back({count - 1});
  AcyclicUnits units(sources, noLimit);
  for (int n = 1; n < count; ++n)
    if (n % 8 != 0) {
      EXPECT_TRUE(units.join(units.unitOf(n - 1), n));
    }
  EXPECT_TRUE(units.join(count, count + 1));
  EXPECT_LE(units.visitedEdges(), 20 * count);
}

TEST(AcyclicUnits, LimitEndsASearch) {
  const int count = 2000;
  Sources sources(count);
  for (int n = 1; n < count; ++n)
    sources[n] = {n - 1};
  AcyclicUnits units(sources, 100);
  EXPECT_FALSE(units.join(0, count - 1));
  EXPECT_LE(units.visitedEdges(), 110);
}

} // namespace
