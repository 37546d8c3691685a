// SPDX-License-Identifier: Apache-2.0
//
// Orders of steps: legal, and no worse than the program's.
#include "passes/planning/step_order.h"

#include <gtest/gtest.h>

#include <random>

using namespace trainc::planning;

namespace {

using Order = std::vector<int>;

TEST(StepOrder, KeepsAGoodProgramOrder) {
  std::vector<Step> steps{{{}, {0}, {}}, {{0}, {1}, {}}, {{1}, {2}, {}}};
  EXPECT_EQ(orderSteps(steps, {64, 64, 64}, {false, false, true}), (Order{0, 1, 2}));
}

TEST(StepOrder, WeightGradientsGoWithTheirInputs) {
  // Steps 0 and 1 make two large tensors, 2 and 3 reduce them to results that cost nothing.
  std::vector<Step> steps{{{}, {0}, {}}, {{}, {1}, {}}, {{0}, {2}, {}}, {{1}, {3}, {}}};
  std::vector<int64_t> bytes{1024, 1024, 0, 0};
  std::vector<bool> kept{false, false, true, true};
  Order order = orderSteps(steps, bytes, kept);
  EXPECT_EQ(order, (Order{0, 2, 1, 3}));
  EXPECT_EQ(peakBytes(steps, bytes, kept, order), 1024);
  EXPECT_EQ(peakBytes(steps, bytes, kept, {0, 1, 2, 3}), 2048);
}

TEST(StepOrder, OverwritesComeLast) {
  // Step 0 overwrites what step 1 still reads.
  std::vector<Step> steps{{{}, {0}, {1}}, {{}, {1}, {}}};
  EXPECT_EQ(orderSteps(steps, {64, 64}, {true, true}), (Order{1, 0}));
}

TEST(StepOrder, CycleLeavesStepsOut) {
  std::vector<Step> steps{{{1}, {0}, {}}, {{0}, {1}, {}}};
  EXPECT_TRUE(orderSteps(steps, {64, 64}, {true, true}).empty());
}

TEST(StepOrder, RandomGraphsStayLegal) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<Step> steps;
    std::vector<int64_t> bytes;
    std::vector<bool> kept;
    for (int s = 0; s < 80; ++s) {
      Step step;
      for (int i = 0; s > 0 && i < 2; ++i)
        step.reads.push_back(int(random() % s));
      step.writes.push_back(s);
      steps.push_back(step);
      bytes.push_back(random() % 4 == 0 ? 0 : 64 * (random() % 16 + 1));
      kept.push_back(random() % 10 == 0);
    }
    Order order = orderSteps(steps, bytes, kept), program(80);
    ASSERT_EQ(order.size(), steps.size());
    std::vector<int> position(80);
    for (int i = 0; i < 80; ++i) {
      position[order[i]] = i;
      program[i] = i;
    }
    for (int s = 0; s < 80; ++s)
      for (int t : steps[s].reads)
        EXPECT_LT(position[t], position[s]);
    EXPECT_LE(peakBytes(steps, bytes, kept, order), peakBytes(steps, bytes, kept, program));
    EXPECT_EQ(orderSteps(steps, bytes, kept), order);
  }
}

} // namespace
