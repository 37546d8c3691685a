// SPDX-License-Identifier: Apache-2.0
//
// Pools on the device against plain loops; the same bits as on the CPU.
#include "runtime/cuda/errors.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/unit/kernels/plain_pool.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

template <typename T> struct pool_test : testing::Test {
  using values = std::vector<T>;

  static values as(const std::vector<double> &from) { return values(from.begin(), from.end()); }

  // What `work` leaves in a tensor of `count` elements.
  template <typename V = T, typename Work>
  static std::vector<V> computed(int64_t count, Work work) {
    device_copy<V> result(std::vector<V>(static_cast<size_t>(count), V(7)));
    work(result.data());
    return result.values();
  }

  static void expect_same(const values &found, const values &expected) {
    for (size_t i = 0; i < found.size(); ++i) {
      if (!(std::isnan(found[i]) && std::isnan(expected[i]))) {
        ASSERT_EQ(found[i], expected[i]) << "element " << i;
      }
    }
  }

  void check(const pool_case &problem) {
    const std::vector<double> numbers = pool_values(problem.inputs(), true);
    const values plain = as(pool_values(problem.inputs(), false));
    const values gradients = as(pool_values(problem.results(), false));
    const std::vector<int64_t> places = largest_places(problem, numbers);
    values largest, sums(places.size()), put(plain.size()), spread(plain.size());
    for (size_t i = 0; i < places.size(); ++i) {
      largest.push_back(static_cast<T>(numbers[static_cast<size_t>(places[i])]));
      put[static_cast<size_t>(places[i])] += gradients[i];
    }
    for_each_pooled(problem, [&](int64_t point, int64_t place) {
      sums[static_cast<size_t>(point)] += plain[static_cast<size_t>(place)];
      spread[static_cast<size_t>(place)] += gradients[static_cast<size_t>(point)];
    });
    device_copy<T> x(as(numbers)), numbered(plain), dy(gradients);
    device_copy<char> scratch(std::vector<char>(places.size() * sizeof(int64_t)));
    set_scratch(scratch.data());
    expect_same(
        computed(problem.results(), [&](T *y) { max_pool(WINDOWS_OF(problem), x.data(), y); }),
        largest);
    std::vector<int64_t> positions(plain.size());
    for (size_t i = 0; i < positions.size(); ++i)
      positions[i] = static_cast<int64_t>(i);
    device_copy<int64_t> of_places(positions);
    EXPECT_EQ(computed<int64_t>(problem.results(),
                                [&](int64_t *y) {
                                  max_pool_of(WINDOWS_OF(problem), x.data(), of_places.data(), y);
                                }),
              places);
    expect_same(
        computed(problem.inputs(),
                 [&](T *dx) { max_pool_gradient(WINDOWS_OF(problem), x.data(), dy.data(), dx); }),
        put);
    expect_same(computed(problem.results(),
                         [&](T *y) { sum_pool(WINDOWS_OF(problem), numbered.data(), y); }),
                sums);
    expect_same(computed(problem.inputs(),
                         [&](T *dx) { sum_pool_gradient(WINDOWS_OF(problem), dy.data(), dx); }),
                spread);
  }
};

using element_types = testing::Types<float, double>;
TYPED_TEST_SUITE(pool_test, element_types);

TYPED_TEST(pool_test, matches_plain_loops) {
  streams queues;
  for (const pool_case &problem : pool_cases())
    if (problem.inputs() < 4000)
      this->check(problem);
}

} // namespace
} // namespace trainc
