// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/team_waiting.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

// Looks when it is due, at threads that wait for so many seconds a second; the times at which they
// go to sleep within `seconds`.
std::vector<double> sleeps_of(wait_choice &choice, double from, double seconds, double share) {
  std::vector<double> times;
  for (double now = from; now < from + seconds; now += 0.05)
    if (choice.is_due(now) && choice.sleeps(now, share * now))
      times.push_back(now - from);
  return times;
}

TEST(TeamWaiting, SpinsUndisturbed) {
  wait_choice choice;
  EXPECT_TRUE(sleeps_of(choice, 100, 50, 0.02).empty());
}

TEST(TeamWaiting, SleepsLongerEachTime) {
  wait_choice choice;
  const std::vector<double> times = sleeps_of(choice, 100, 200, 0.5);
  ASSERT_GE(times.size(), 7u);
  EXPECT_LT(times[0], 0.5);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(times[i + 1] - times[i], (1 << i) + 0.25, 0.2) << i;
  EXPECT_NEAR(times[7] - times[6], 32.25, 0.2);
}

TEST(TeamWaiting, SpinsAgainWhenTheOtherIsGone) {
  wait_choice choice;
  EXPECT_FALSE(sleeps_of(choice, 100, 20, 0.5).empty());
  EXPECT_TRUE(sleeps_of(choice, 140, 20, 0).empty());
  const std::vector<double> times = sleeps_of(choice, 160, 3, 0.5);
  ASSERT_GE(times.size(), 2u);
  EXPECT_NEAR(times[1] - times[0], 1.25, 0.2); // no longer than the first time
}

} // namespace
} // namespace trainc
