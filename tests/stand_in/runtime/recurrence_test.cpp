// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers on the device against plain loops in f64.
#include "runtime/communicator.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/matmul.h"
#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/unit/plain_recurrence.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

template <typename T> struct recurrence_test : testing::Test {
  static char *workspace() {
    static char *memory = nullptr; // for all tests: the stand-in watches each of its bytes
    if (!memory)
      check_cuda(cudaMalloc(reinterpret_cast<void **>(&memory), product_workspace_bytes),
                 "workspace");
    return memory;
  }

  void check(const recurrence_case &problem, int64_t blocks) {
    const auto run = [](auto work) {
      streams queues;
      communicator alone;
      product_settings settings;
      settings.timed = false;
      plan_products(settings, alone, [&](const arenas &) { work(); });
      set_product_workspace(workspace());
      work();
      check_cuda(cudaDeviceSynchronize(), "a test");
      forget_products();
    };
    check_recurrence<T, device_copy>(
        plain_recurrence(problem, blocks), run,
        [&](const std::string &name, const std::vector<T> &found, const numbers &expected) {
          double largest = 1;
          for (double value : expected)
            largest = std::max(largest, std::fabs(value));
          ASSERT_EQ(found.size(), expected.size());
          for (size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(static_cast<double>(found[i]), expected[i],
                        (sizeof(T) == 8 ? 1e-12 : 1e-5) * largest)
                << name << " " << i << " of " << blocks << " blocks, " << problem.text();
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
