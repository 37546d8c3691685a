// SPDX-License-Identifier: Apache-2.0
//
// Memory plans: never an overlap, near the lower bound, the same every time.
#include "passes/planning/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

using namespace trainc::planning;

namespace {

void expectLegal(const std::vector<Buffer> &buffers, const MemoryPlan &plan) {
  for (size_t a = 0; a < buffers.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % bufferAlignment, 0);
    EXPECT_LE(plan.offsets[a] + buffers[a].bytes, plan.bytes);
    for (size_t b = 0; b < a; ++b) {
      bool together = buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
      bool apart = plan.offsets[a] + buffers[a].bytes <= plan.offsets[b] ||
                   plan.offsets[b] + buffers[b].bytes <= plan.offsets[a];
      EXPECT_TRUE(!together || apart) << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, Empty) {
  MemoryPlan plan = planMemory({});
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.lowerBound, 0);
}

TEST(MemoryPlan, ReusesWhatIsDead) {
  MemoryPlan plan = planMemory({{100, 0, 1}, {100, 1, 2}, {100, 2, 3}});
  EXPECT_EQ(plan.bytes, 256);
  EXPECT_EQ(plan.lowerBound, 256);
}

TEST(MemoryPlan, AlignsOddSizes) {
  std::vector<Buffer> buffers{{1, 0, 2}, {63, 0, 2}, {65, 0, 2}};
  MemoryPlan plan = planMemory(buffers);
  expectLegal(buffers, plan);
  EXPECT_EQ(plan.bytes, 256);
}

TEST(MemoryPlan, PeakNamesTheStep) {
  auto [bytes, step] = peakOf({{64, 0, 4}, {128, 2, 3}, {64, 4, 5}});
  EXPECT_EQ(bytes, 192);
  EXPECT_EQ(step, 2);
}

TEST(MemoryPlan, ForwardAndBackwardNest) {
  // Activations live until their gradient: nested lifetimes of equal and unequal sizes.
  std::vector<Buffer> buffers;
  for (int layer = 0; layer < 24; ++layer) {
    buffers.push_back({4096 * (1 + layer % 3), 2 * layer, 199 - 2 * layer});
    buffers.push_back({16384, 2 * layer, 2 * layer + 1});
    buffers.push_back({12288, 198 - 2 * layer, 199 - 2 * layer});
  }
  MemoryPlan plan = planMemory(buffers);
  expectLegal(buffers, plan);
  EXPECT_LE(double(plan.bytes), 1.02 * double(plan.lowerBound));
}

TEST(MemoryPlan, RandomBuffersAreLegalAndRepeatable) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<Buffer> buffers;
    for (int i = 0; i < 120; ++i) {
      int first = int(random() % 100);
      buffers.push_back({int64_t(random() % 5000 + 1), first, first + int(random() % 20)});
    }
    MemoryPlan plan = planMemory(buffers);
    expectLegal(buffers, plan);
    EXPECT_LE(double(plan.bytes), 1.10 * double(plan.lowerBound)) << "seed " << seed;
    EXPECT_EQ(planMemory(buffers).offsets, plan.offsets);
  }
}

TEST(MemoryPlan, LargeModelIsQuick) {
  std::mt19937 random(1);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 2500; ++i) {
    int first = int(random() % 2400);
    bool kept = i % 3 == 0;
    buffers.push_back(
        {int64_t(random() % 100000 + 64), first, first + int(random() % (kept ? 1200 : 4))});
  }
  auto start = std::chrono::steady_clock::now();
  MemoryPlan plan = planMemory(buffers);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 5.0); // a guard against quadratic growth in the number of trials
  EXPECT_LE(double(plan.bytes), 1.10 * double(plan.lowerBound));
}

TEST(MemoryPlan, ManyBuffersAreScanned) {
  // 30,000 cells, forward and backward: far too many to compare every pair.
  const int cells = 30000;
  std::vector<Buffer> buffers;
  for (int cell = 0; cell < cells; ++cell) {
    buffers.push_back({1024, cell, 2 * cells - cell});
    buffers.push_back({4096, cell, cell + 1});
    buffers.push_back({4096 + 64 * (cell % 3), 2 * cells - cell, 2 * cells - cell + 1});
  }
  MemoryPlan plan = planMemory(buffers);
  EXPECT_LE(double(plan.bytes), 1.05 * double(plan.lowerBound));
  // Of those alive at one step no two overlap.
  for (int step : {0, 1, cells / 2, cells - 1, cells, cells + 1, 2 * cells - 7}) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (size_t b = 0; b < buffers.size(); ++b)
      if (buffers[b].first <= step && step <= buffers[b].last)
        ranges.push_back({plan.offsets[b], plan.offsets[b] + buffers[b].bytes});
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      ASSERT_LE(ranges[i - 1].second, ranges[i].first) << "step " << step;
  }
}

} // namespace
