// SPDX-License-Identifier: Apache-2.0
//
// What --augment does with a picture.
#include "runtime/data/augmentation.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <set>
#include <tuple>

namespace trainc {
namespace {

constexpr picture_shape shape = {3, 5, 7};
constexpr int64_t seed = 9, samples = 400;

// No two values are equal, and none is 0.
std::vector<float> picture() {
  std::vector<float> values(3 * 5 * 7);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

template <typename Value>
std::vector<Value> changed(const augmentation &changes, std::vector<Value> values, int64_t sample) {
  std::vector<char> room(values.size() * sizeof(Value));
  changes.apply(reinterpret_cast<char *>(values.data()), shape, sizeof(Value), seed, sample, room);
  return values;
}

// Pixel (row, column) is what was at (row + rows, column + columns) of the mirrored picture.
std::vector<float> expected(int64_t rows, int64_t columns, bool flips) {
  const std::vector<float> from = picture();
  std::vector<float> result;
  for (int64_t channel = 0; channel < 3; ++channel)
    for (int64_t row = 0; row < 5; ++row)
      for (int64_t column = 0; column < 7; ++column) {
        const int64_t r = row + rows, c = (flips ? 6 - column : column) + columns;
        const bool is_inside = r >= 0 && r < 5 && c >= 0 && c < 7;
        result.push_back(is_inside ? from[static_cast<size_t>((channel * 5 + r) * 7 + c)] : 0);
      }
  return result;
}

augmentation parsed(const std::string &text) {
  augmentation changes;
  std::string why;
  EXPECT_TRUE(augmentation::parse(text, changes, why)) << why;
  return changes;
}

TEST(Augmentation, FlipsOneInTwo) {
  const augmentation changes = parsed("flip");
  int64_t flipped = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const std::vector<float> found = changed(changes, picture(), sample);
    ASSERT_TRUE(found == picture() || found == expected(0, 0, true));
    flipped += found != picture();
  }
  EXPECT_NEAR(static_cast<double>(flipped), samples / 2.0, 50); // five standard deviations
}

TEST(Augmentation, MovesByUpToSoManyPixels) {
  const augmentation changes = parsed("crop=2,flip");
  std::set<std::tuple<int64_t, int64_t, bool>> seen;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const std::vector<float> found = changed(changes, picture(), sample);
    const size_t before = seen.size();
    bool is_any = false;
    for (int64_t rows = -2; rows <= 2; ++rows)
      for (int64_t columns = -2; columns <= 2; ++columns)
        for (bool flips : {false, true})
          if (found == expected(rows, columns, flips)) {
            is_any = true;
            seen.insert({rows, columns, flips});
          }
    ASSERT_TRUE(is_any && seen.size() <= before + 1);
  }
  EXPECT_EQ(seen.size(), 50u); // every move there is
}

TEST(Augmentation, ErasesASquare) {
  const augmentation changes = parsed("erase=3");
  const std::vector<float> before = picture();
  std::set<int64_t> sizes;
  for (int64_t sample = 0; sample < samples; ++sample) {
    const std::vector<float> found = changed(changes, before, sample);
    int64_t top = 5, bottom = -1, left = 7, right = -1, zeros = 0;
    for (int64_t i = 0; i < 35; ++i) {
      const bool is_zero = found[static_cast<size_t>(i)] == 0;
      for (int64_t channel = 1; channel < 3; ++channel)
        ASSERT_EQ(found[static_cast<size_t>(channel * 35 + i)] == 0, is_zero);
      if (!is_zero) {
        ASSERT_EQ(found[static_cast<size_t>(i)], before[static_cast<size_t>(i)]);
        continue;
      }
      ++zeros;
      top = std::min(top, i / 7), bottom = std::max(bottom, i / 7);
      left = std::min(left, i % 7), right = std::max(right, i % 7);
    }
    ASSERT_EQ(zeros, (bottom - top + 1) * (right - left + 1));
    ASSERT_TRUE(bottom - top < 3 && right - left < 3);
    sizes.insert(zeros);
  }
  EXPECT_EQ(sizes, (std::set<int64_t>{4, 6, 9})); // whole, or over a border or two
}

TEST(Augmentation, IsTheSameForEveryType) {
  const augmentation changes = parsed("flip,crop=1,erase=2");
  const std::vector<float> values = picture();
  for (int64_t sample = 0; sample < 20; ++sample) {
    const std::vector<float> found = changed(changes, values, sample);
    const std::vector<double> wide =
        changed(changes, std::vector<double>(values.begin(), values.end()), sample);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), wide.begin()));
    EXPECT_EQ(found, changed(changes, values, sample));
  }
}

TEST(Augmentation, SaysWhatIsNoWord) {
  for (const char *text :
       {"flop", "crop", "crop=", "crop=0", "crop=-1", "crop=2x", "flip,,crop=1"}) {
    augmentation changes;
    std::string why;
    EXPECT_FALSE(augmentation::parse(text, changes, why)) << text;
    EXPECT_NE(why.find("none of flip"), std::string::npos);
  }
  EXPECT_TRUE(parsed("").does_nothing());
}

} // namespace
} // namespace trainc
