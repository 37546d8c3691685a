// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on the device against plain loops in f64: with room for all columns at once, for
// some images, for a part of one.
#include "runtime/cuda/launch.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/stand_in/runtime/planned_products.h"
#include "tests/unit/kernels/plain_convolution.h"

#include <cmath>
#include <gtest/gtest.h>
#include <type_traits>

namespace trainc {
namespace {

template <typename T> struct convolution_test : testing::Test {
  using sum = std::conditional_t<is_narrow_v<T>, float, T>;

  void check(convolution_part part, const convolution_case &problem, int64_t bytes) {
    const convolution_numbers numbers(part, problem, sizeof(T) == 2 ? 8 : 20);
    device_copy<T> first(std::vector<T>(numbers.first.begin(), numbers.first.end()));
    device_copy<T> second(std::vector<T>(numbers.second.begin(), numbers.second.end()));
    device_copy<sum> computed(std::vector<sum>(numbers.computed.size(), NAN));
    device_copy<char> scratch(std::vector<char>(static_cast<size_t>(bytes)));
    run_planned([&] {
      run_convolution(part, problem, bytes, first.data(), second.data(), computed.data(),
                      scratch.data());
    });
    const std::vector<sum> found = computed.values();
    double largest = 1e-3;
    for (double value : numbers.computed)
      largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(static_cast<double>(found[i]), numbers.computed[i],
                  (sizeof(T) == 8 ? 1e-13 : 1e-5) * largest)
          << "part " << static_cast<int>(part) << " of " << problem.input[1] << " -> "
          << problem.weight[0] << " channels, element " << i << ", scratch of " << bytes;
  }
};

using element_types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(convolution_test, element_types);

// Large enough to be cut, small enough for an executor of single threads.
bool is_small(const convolution_case &problem) {
  return computed_count(convolution_part::input_gradient, problem) < 4000 &&
         computed_count(convolution_part::weight_gradient, problem) < 4000;
}

TYPED_TEST(convolution_test, matches_plain_loops) {
  int checked = 0;
  for (const convolution_case &problem : convolution_cases())
    for (convolution_part part : all_parts)
      if (is_small(problem)) {
        this->check(part, problem,
                    convolution_scratch_bytes(problem.shape(), sizeof(typename TestFixture::sum)));
        ++checked;
      }
  EXPECT_GT(checked, 20);
}

TYPED_TEST(convolution_test, takes_as_many_columns_as_the_scratch_holds) {
  const convolution_case problem = {{5, 2, 9, 14}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2};
  const int64_t column = (2 * 9 + 4) * static_cast<int64_t>(sizeof(typename TestFixture::sum));
  for (int64_t columns : {1, 50, 64, 130, 126 * 2, 126 * 3 + 1})
    for (convolution_part part : all_parts)
      this->check(part, problem, columns * column);
}

} // namespace
} // namespace trainc
