// SPDX-License-Identifier: Apache-2.0
//
// Which cases a test takes that would be long with all of them: other ones with every commit, as
// `sample` of tests/train/harness.sh.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace trainc {

/// So many of the numbers below `count`, in order, others for each test; all of them with LONG=1
/// and where there is no SEED, which lit's configuration sets. The last `long_ones` are in no
/// sample.
inline std::vector<size_t> sample_of(size_t number, size_t count, size_t long_ones = 0) {
  const auto given = [](const char *name) {
    const char *text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  const std::string seed = given("SEED");
  std::vector<size_t> chosen(count);
  std::iota(chosen.begin(), chosen.end(), size_t(0));
  if (seed.empty() || !given("LONG").empty() || number >= count)
    return chosen;
  chosen.resize(count - long_ones);
  const testing::TestInfo &test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string text = seed + " " + test.test_suite_name() + "." + test.name();
  std::seed_seq words(text.begin(), text.end());
  std::mt19937 random(words);
  std::shuffle(chosen.begin(), chosen.end(), random);
  chosen.resize(number);
  std::sort(chosen.begin(), chosen.end());
  std::cerr << "== chosen by SEED=" << seed << ":";
  for (size_t one : chosen)
    std::cerr << " " << one;
  std::cerr << "\n";
  return chosen;
}

} // namespace trainc
