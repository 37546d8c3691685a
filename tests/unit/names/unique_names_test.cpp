// SPDX-License-Identifier: Apache-2.0
#include "dialects/names/unique_names.h"
#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>

using trainc::UniqueNames;

TEST(UniqueNames, NumbersFromTwo) {
  UniqueNames names;
  EXPECT_EQ(names.unique("add"), "add");
  EXPECT_EQ(names.unique("add"), "add_2");
  EXPECT_EQ(names.unique("add"), "add_3");
  EXPECT_EQ(names.unique("mul"), "mul");
}

TEST(UniqueNames, PassesOverNamesThatAreTaken) {
  UniqueNames names;
  names.take("add_2");
  EXPECT_EQ(names.unique("add"), "add");
  EXPECT_EQ(names.unique("add"), "add_3");
  EXPECT_EQ(names.unique("add_2"), "add_2_2");
  EXPECT_TRUE(names.contains("add_3"));
  EXPECT_FALSE(names.contains("add_4"));
}

// A chain of equal nodes has one base: four times the names must not take sixteen times as long.
TEST(UniqueNames, TakesTimeLinearInTheNames) {
  auto seconds = [](int count) { // of a processor, whatever runs beside this; the least of some
    std::clock_t least = 0;
    for (int attempt = 0; attempt < 4; ++attempt) {
      UniqueNames names;
      const std::clock_t start = std::clock();
      for (int i = 0; i < count; ++i)
        names.unique("model.layers.chain.add");
      const std::clock_t taken = std::clock() - start;
      least = attempt == 0 ? taken : std::min(least, taken);
    }
    return double(least) / CLOCKS_PER_SEC;
  };
  double few = seconds(50'000), many = seconds(200'000);
  EXPECT_LT(many, 10 * few + 0.05);
}
