// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: against plain loops in f64, over all kinds of them, and the
// same bits for every number of threads.
#include "tests/unit/kernels/plain_convolution.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <omp.h>

namespace trainc {
namespace {

template <typename T>
std::vector<T> run(convolution_part part, const convolution_case &problem,
                   const convolution_numbers &numbers, int threads, int64_t bytes) {
  const std::vector<T> first(numbers.first.begin(), numbers.first.end());
  const std::vector<T> second(numbers.second.begin(), numbers.second.end());
  std::vector<T> computed(numbers.computed.size(), NAN);
  std::vector<char> scratch(static_cast<size_t>(bytes) + 64);
  const uintptr_t past = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
  omp_set_num_threads(threads);
  run_convolution<T>(part, problem, bytes, first.data(), second.data(), computed.data(),
                     scratch.data() + (64 - past) % 64);
  return computed;
}

template <typename T>
std::vector<T> run(convolution_part part, const convolution_case &problem,
                   const convolution_numbers &numbers, int threads) {
  return run<T>(part, problem, numbers, threads,
                convolution_scratch_bytes(problem.shape(), sizeof(T)));
}

TEST(kernels_convolution, against_loops) {
  for (const convolution_case &problem : convolution_cases())
    for (convolution_part part : all_parts) {
      const convolution_numbers numbers(part, problem);
      double largest = 1e-3;
      for (double value : numbers.computed)
        largest = std::max(largest, std::fabs(value));
      const std::vector<double> f64 = run<double>(part, problem, numbers, 2);
      const std::vector<float> f32 = run<float>(part, problem, numbers, 2);
      for (size_t i = 0; i < f64.size(); ++i) {
        ASSERT_NEAR(f64[i], numbers.computed[i], 1e-13 * largest);
        ASSERT_NEAR(f32[i], numbers.computed[i], 1e-5 * largest)
            << "part " << static_cast<int>(part) << " of " << problem.input[1] << " -> "
            << problem.weight[0] << " channels, element " << i;
      }
      const std::vector<float> tight = run<float>(part, problem, numbers, 2, 0);
      for (size_t i = 0; i < tight.size(); ++i)
        ASSERT_NEAR(tight[i], numbers.computed[i], 1e-5 * largest)
            << "without scratch, part " << static_cast<int>(part) << " of " << problem.input[1]
            << " -> " << problem.weight[0] << " channels, element " << i;
    }
}

TEST(kernels_convolution, same_bits_for_any_number_of_threads) {
  for (const convolution_case &problem : convolution_cases())
    for (convolution_part part : all_parts) {
      const convolution_numbers numbers(part, problem);
      const std::vector<float> one = run<float>(part, problem, numbers, 1);
      for (int threads : {2, 3}) {
        const std::vector<float> other = run<float>(part, problem, numbers, threads);
        ASSERT_EQ(one.size(), other.size());
        ASSERT_TRUE(one.empty() ||
                    !std::memcmp(one.data(), other.data(), one.size() * sizeof(float)))
            << threads << " threads, part " << static_cast<int>(part) << " of " << problem.input[1]
            << " -> " << problem.weight[0] << " channels";
      }
    }
}

} // namespace
} // namespace trainc
