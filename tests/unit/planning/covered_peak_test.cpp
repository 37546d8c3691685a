// SPDX-License-Identifier: Apache-2.0
//
// Bytes in use at a step, where tensors share memory.
#include "passes/planning/covered_peak.h"

#include <gtest/gtest.h>

#include <random>

using namespace trainc::planning;

namespace {

using Peak = std::pair<int64_t, int>;

TEST(CoveredPeak, NothingAlive) { EXPECT_EQ(coveredPeak({}), Peak(0, -1)); }

TEST(CoveredPeak, SharedMemoryCountsOnce) {
  // An output over its input, and a neighbour that overlaps half of them.
  EXPECT_EQ(coveredPeak({{0, 64, 0, 2}, {0, 64, 2, 4}, {32, 64, 2, 3}}), Peak(96, 2));
}

TEST(CoveredPeak, FirstOfEqualSteps) {
  EXPECT_EQ(coveredPeak({{0, 64, 1, 1}, {64, 64, 3, 3}}), Peak(64, 1));
}

TEST(CoveredPeak, AgreesWithCountingBytes) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<PlacedBuffer> buffers;
    for (int i = 0; i < 30; ++i) {
      int first = int(random() % 20);
      buffers.push_back(
          {int64_t(random() % 50), int64_t(random() % 20 + 1), first, first + int(random() % 8)});
    }
    Peak expected(0, -1);
    for (int step = 0; step < 30; ++step) {
      int64_t used = 0;
      for (int64_t byte = 0; byte < 80; ++byte)
        used += std::any_of(buffers.begin(), buffers.end(), [&](const PlacedBuffer &buffer) {
          return buffer.first <= step && step <= buffer.last && buffer.offset <= byte &&
                 byte < buffer.offset + buffer.bytes;
        });
      if (used > expected.first)
        expected = {used, step};
    }
    EXPECT_EQ(coveredPeak(buffers), expected) << "seed " << seed;
  }
}

} // namespace
