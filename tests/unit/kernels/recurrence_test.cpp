// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers against plain loops, on sizes that threads share by sequences and by elements of
// the state, and the same bits for every number of threads.
#include "tests/unit/kernels/plain_recurrence.h"

#include <gtest/gtest.h>
#include <map>
#include <omp.h>

namespace trainc {
namespace {

template <typename T> class host_copy {
public:
  explicit host_copy(std::vector<T> values) : values_(std::move(values)) {}
  T *data() { return values_.data(); }
  const std::vector<T> &values() const { return values_; }

private:
  std::vector<T> values_;
};

template <typename T> struct kernels_recurrence : testing::Test {
  void check(const recurrence_case &problem, int64_t blocks) {
    const plain_recurrence plain(problem, blocks);
    std::map<std::string, std::vector<T>> first;
    for (int threads : {1, 2, 5}) {
      omp_set_num_threads(threads);
      check_recurrence<T, host_copy>(
          plain, [](auto work) { work(); },
          [&](const std::string &name, const std::vector<T> &found, const numbers &expected) {
            expect_recurrence(plain, name, found, expected, sizeof(T) == 8 ? 1e-12 : 2e-5);
            const auto &before = first.try_emplace(name, found).first->second;
            ASSERT_EQ(found, before)
                << name << " with " << threads << " threads, " << problem.text();
          });
    }
    omp_set_num_threads(1);
  }
};
using element_types = testing::Types<float, double>;
TYPED_TEST_SUITE(kernels_recurrence, element_types);

TYPED_TEST(kernels_recurrence, shares_sequences) {
  for (const recurrence_case &problem :
       recurrence_cases({{4, 3, 5}, {1, 1, 1}, {3, 35, 33}, {5, 16, 64}}))
    for (int64_t blocks : {1, 3, 4})
      this->check(problem, blocks);
}

// Recurrent weights too large for one core's cache.
TYPED_TEST(kernels_recurrence, shares_elements_of_the_state) {
  for (const recurrence_case &problem : recurrence_cases({{3, 9, 225}}))
    for (int64_t blocks : {3, 4})
      this->check(problem, blocks);
  this->check({{3, 5, 400}, true}, 1);
}

} // namespace
} // namespace trainc
