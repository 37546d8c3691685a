// SPDX-License-Identifier: Apache-2.0
//
// Pools and their gradients: against plain loops, over all kinds of them, and the same bits for
// every number of threads.
#include "tests/unit/kernels/plain_pool.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <omp.h>

namespace trainc {
namespace {

template <typename T> struct kernels_pool : testing::Test {
  static std::vector<T> as(const std::vector<double> &values) {
    return std::vector<T>(values.begin(), values.end());
  }
  // Equal bits, but for which NaN it is.
  static void expect_same(const std::vector<T> &found, const std::vector<T> &expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (!(std::isnan(found[i]) && std::isnan(expected[i]))) {
        ASSERT_EQ(found[i], expected[i]) << "element " << i;
      }
    }
  }
};
using element_types = testing::Types<float, double>;
TYPED_TEST_SUITE(kernels_pool, element_types);

TYPED_TEST(kernels_pool, largest_elements) {
  for (const pool_case &problem : pool_cases())
    for (bool with_nan : {false, true}) {
      const std::vector<double> values = pool_values(problem.inputs(), with_nan);
      const std::vector<TypeParam> x = this->as(values);
      const std::vector<int64_t> places = largest_places(problem, values);
      std::vector<TypeParam> expected, y(places.size()), picked(places.size());
      for (int64_t place : places)
        expected.push_back(x[static_cast<size_t>(place)]);
      max_pool(WINDOWS_OF(problem), x.data(), y.data());
      this->expect_same(y, expected);
      const std::vector<TypeParam> copy = x;
      max_pool_of(WINDOWS_OF(problem), x.data(), copy.data(), picked.data());
      this->expect_same(picked, expected);
      std::vector<int64_t> positions(x.size()), found(places.size());
      std::iota(positions.begin(), positions.end(), 0);
      max_pool_of(WINDOWS_OF(problem), x.data(), positions.data(), found.data());
      EXPECT_EQ(found, places);
    }
}

TYPED_TEST(kernels_pool, gradient_of_largest_elements) {
  for (const pool_case &problem : pool_cases())
    for (int threads : {1, 3}) {
      omp_set_num_threads(threads);
      const std::vector<double> values = pool_values(problem.inputs(), true);
      const std::vector<TypeParam> x = this->as(values),
                                   dy = this->as(pool_values(problem.results(), false));
      const std::vector<int64_t> places = largest_places(problem, values);
      std::vector<TypeParam> expected(x.size()), dx(x.size(), 7);
      for (size_t i = 0; i < places.size(); ++i)
        expected[static_cast<size_t>(places[i])] += dy[i];
      max_pool_gradient(WINDOWS_OF(problem), x.data(), dy.data(), dx.data());
      this->expect_same(dx, expected);
    }
}

TYPED_TEST(kernels_pool, sums) {
  for (const pool_case &problem : pool_cases())
    for (int threads : {1, 3}) {
      omp_set_num_threads(threads);
      const std::vector<TypeParam> x = this->as(pool_values(problem.inputs(), false)),
                                   dy = this->as(pool_values(problem.results(), false));
      std::vector<TypeParam> sums(dy.size()), y(dy.size(), 7), spread(x.size()), dx(x.size(), 7);
      for_each_pooled(problem, [&](int64_t point, int64_t place) {
        sums[static_cast<size_t>(point)] += x[static_cast<size_t>(place)];
        spread[static_cast<size_t>(place)] += dy[static_cast<size_t>(point)];
      });
      sum_pool(WINDOWS_OF(problem), x.data(), y.data());
      this->expect_same(y, sums);
      sum_pool_gradient(WINDOWS_OF(problem), dy.data(), dx.data());
      // The order is that of points within a row, taps outside: another rounding.
      for (size_t i = 0; i < dx.size(); ++i) {
        if (!std::isinf(spread[i])) {
          ASSERT_NEAR(static_cast<double>(dx[i]), static_cast<double>(spread[i]), 1e-4);
        }
      }
    }
}

} // namespace
} // namespace trainc
