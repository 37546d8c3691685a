// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers on the device against plain loops in f64.
#include "runtime/cuda/launch.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/stand_in/runtime/planned_products.h"
#include "tests/unit/kernels/plain_recurrence.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

template <typename T> struct recurrence_test : testing::Test {
  void check(const recurrence_case &problem, int64_t blocks) {
    const plain_recurrence plain(problem, blocks);
    check_recurrence<T, device_copy>(
        plain, [](auto work) { run_planned(work); },
        [&](const std::string &name, const std::vector<T> &found, const numbers &expected) {
          expect_recurrence(plain, name, found, expected, sizeof(T) == 8 ? 1e-12 : 1e-5);
        });
  }
};
using element_types = testing::Types<float, double>;
TYPED_TEST_SUITE(recurrence_test, element_types);

TYPED_TEST(recurrence_test, matches_plain_loops) {
  for (const recurrence_case &problem : recurrence_cases({{4, 3, 5}, {1, 1, 1}, {2, 17, 20}}))
    for (int64_t blocks : {1, 3, 4})
      this->check(problem, blocks);
}

} // namespace
} // namespace trainc
