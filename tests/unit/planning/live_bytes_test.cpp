// SPDX-License-Identifier: Apache-2.0
//
// The most bytes alive while lifetimes change.
#include "passes/planning/live_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace trainc::planning;

namespace {

TEST(LiveBytes, AgreesWithAnArray) {
  for (int positions : {1, 2, 7, 100}) {
    std::mt19937 random(positions);
    LiveBytes live(positions);
    std::vector<int64_t> all(positions, 0);
    EXPECT_EQ(live.peak(), 0);
    for (int change = 0; change < 300; ++change) {
      int first = int(random() % unsigned(positions)), last = int(random() % unsigned(positions));
      int64_t bytes = int64_t(random() % 200) - 80;
      live.add(first, last, bytes);
      for (int at = first; at <= last; ++at)
        all[at] += bytes;
      ASSERT_EQ(live.peak(), *std::max_element(all.begin(), all.end()));
    }
  }
}

} // namespace
