// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/tensor_statistics.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <omp.h>
#include <vector>

namespace trainc {
namespace {

std::vector<float> some_values(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(i % 97 == 0 ? 0.0F
                                 : std::ldexp(static_cast<float>(i * 7919 % 2003 - 1001),
                                              static_cast<int>(i % 9) - 12));
  return values;
}

tensor_statistics of(const std::vector<float> &values, double scale = 1,
                     transposed_matrix matrix = {}) {
  const auto count = static_cast<int64_t>(values.size());
  statistics_taker taker(count);
  return taker.of(data_type::f32, reinterpret_cast<const char *>(values.data()), count, scale,
                  matrix);
}

TEST(tensor_statistics, are_those_of_a_plain_loop) {
  for (int64_t count : {1, 7, 8, 511, 512, 513, 16384, 16385, 100003}) {
    const std::vector<float> values = some_values(count);
    const tensor_statistics found = of(values);
    tensor_statistics expected;
    for (int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(values[static_cast<size_t>(i)]);
      expected.sum += value;
      expected.sum_of_absolutes += std::fabs(value);
      expected.sum_of_squares += value * value;
      expected.least = std::min(expected.least, value);
      expected.largest = std::max(expected.largest, value);
      for (size_t k = 0; k < sketch_count; ++k)
        expected.sketch[k] += (sketch_signs(static_cast<uint64_t>(i)) >> k) & 1 ? -value : value;
      if (value == 0)
        ++expected.zeros;
      else
        ++(value < 0 ? expected.negative
                     : expected.positive)[static_cast<size_t>(std::ilogb(value) - lowest_exponent)];
    }
    const double within = 1e-12 * expected.sum_of_absolutes;
    EXPECT_EQ(found.count, count);
    EXPECT_EQ(found.zeros, expected.zeros);
    EXPECT_EQ(found.negative, expected.negative);
    EXPECT_EQ(found.positive, expected.positive);
    EXPECT_EQ(found.least, expected.least);
    EXPECT_EQ(found.largest, expected.largest);
    EXPECT_NEAR(found.sum, expected.sum, within);
    EXPECT_NEAR(found.sum_of_squares, expected.sum_of_squares, 1e-12 * expected.sum_of_squares);
    for (size_t k = 0; k < sketch_count; ++k)
      EXPECT_NEAR(found.sketch[k], expected.sketch[k], within);
  }
}

TEST(tensor_statistics, count_what_is_not_finite_and_leave_it_out) {
  std::vector<float> values = some_values(1000);
  const float infinity = std::numeric_limits<float>::infinity();
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[700] = infinity;
  values[999] = -infinity;
  const tensor_statistics found = of(values);
  EXPECT_EQ(found.nans, 1);
  EXPECT_EQ(found.infinities, 2);
  EXPECT_EQ(found.finite(), 997);
  EXPECT_TRUE(std::isfinite(found.norm()));
  EXPECT_TRUE(std::isfinite(found.largest));
  const tensor_statistics none = of({infinity, -infinity});
  EXPECT_EQ(none.finite(), 0);
  EXPECT_EQ(none.norm(), 0);
}

TEST(tensor_statistics, have_the_same_bits_for_any_number_of_threads) {
  const std::vector<float> values = some_values(200001);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const tensor_statistics one = of(values);
  omp_set_num_threads(5);
  const tensor_statistics five = of(values);
  omp_set_num_threads(before);
  EXPECT_EQ(one.sum, five.sum);
  EXPECT_EQ(one.sum_of_squares, five.sum_of_squares);
  EXPECT_EQ(one.sketch, five.sketch);
}

TEST(tensor_statistics, see_a_transposed_matrix_as_its_module_does) {
  constexpr int64_t rows = 30, columns = 17;
  const std::vector<float> values = some_values(rows * columns);
  std::vector<float> transposed(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      transposed[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
  const tensor_statistics in_memory = of(values, 1, {rows, columns}), plain = of(transposed);
  for (size_t k = 0; k < sketch_count; ++k)
    EXPECT_NEAR(in_memory.sketch[k], plain.sketch[k], 1e-9);
}

TEST(tensor_statistics, tell_how_far_two_tensors_are_apart) {
  std::vector<float> values = some_values(50000), others = values;
  double squares = 0;
  for (size_t i = 0; i < others.size(); i += 3) {
    others[i] += 0.001F;
    squares += std::pow(static_cast<double>(others[i]) - static_cast<double>(values[i]), 2);
  }
  const tensor_statistics one = of(values), other = of(others);
  double estimate = 0;
  for (size_t k = 0; k < sketch_count; ++k)
    estimate += std::pow(one.sketch[k] - other.sketch[k], 2) / sketch_count;
  EXPECT_GT(std::sqrt(estimate), 0.2 * std::sqrt(squares));
  EXPECT_LT(std::sqrt(estimate), 3 * std::sqrt(squares));
}

} // namespace
} // namespace trainc
