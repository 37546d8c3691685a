// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and their gradients: against plain loops in f64, over all kinds of them, and the
// same bits for every number of threads. Against loops a third of the cases, LONG=1: all.
#include "tests/unit/kernels/plain_convolution.h"
#include "tests/unit/sample.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <omp.h>

namespace trainc {
namespace {

template <typename T, typename To = T>
std::vector<To> run(convolution_part part, const convolution_case &problem,
                    const convolution_numbers &numbers, int threads, int64_t bytes) {
  const std::vector<T> first(numbers.first.begin(), numbers.first.end());
  const std::vector<T> second(numbers.second.begin(), numbers.second.end());
  std::vector<To> computed(numbers.computed.size(), NAN);
  std::vector<char> scratch(static_cast<size_t>(bytes) + 64);
  const uintptr_t past = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
  omp_set_num_threads(threads);
  run_convolution(part, problem, bytes, first.data(), second.data(), computed.data(),
                  scratch.data() + (64 - past) % 64);
  return computed;
}

template <typename T>
std::vector<T> run(convolution_part part, const convolution_case &problem,
                   const convolution_numbers &numbers, int threads) {
  return run<T>(part, problem, numbers, threads,
                convolution_scratch_bytes(problem.shape(), sizeof(T)));
}

std::vector<convolution_case> a_third_of_cases() {
  const std::vector<convolution_case> all = convolution_cases();
  std::vector<convolution_case> some;
  for (const size_t i : sample_of((all.size() + 2) / 3, all.size()))
    some.push_back(all[i]);
  return some;
}

TEST(kernels_convolution, against_loops) {
  for (const convolution_case &problem : a_third_of_cases())
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

template <typename T> void check_narrow() {
  for (const convolution_case &problem : a_third_of_cases()) {
    const int64_t bytes = convolution_scratch_bytes(problem.shape(), sizeof(float)) +
                          convolution_widened_bytes(problem.shape());
    for (convolution_part part : all_parts) {
      const convolution_numbers numbers(part, problem, 8); // exact in 16 bits
      double largest = 1e-3;
      for (double value : numbers.computed)
        largest = std::max(largest, std::fabs(value));
      const auto sums = run<T, float>(part, problem, numbers, 2, bytes);
      const auto other = run<T, float>(part, problem, numbers, 3, bytes);
      for (size_t i = 0; i < sums.size(); ++i) {
        ASSERT_NEAR(sums[i], numbers.computed[i], 1e-5 * largest)
            << "part " << static_cast<int>(part) << " of " << problem.input[1] << " -> "
            << problem.weight[0] << " channels, element " << i;
        ASSERT_EQ(sums[i], other[i]);
      }
    }
    const convolution_numbers numbers(convolution_part::result, problem, 8);
    const std::vector<T> first(numbers.first.begin(), numbers.first.end()),
        second(numbers.second.begin(), numbers.second.end());
    std::vector<T> rounded(numbers.computed.size());
    const convolution_shape shape = problem.shape();
    std::vector<char> scratch(static_cast<size_t>(bytes) + 64);
    const uintptr_t past = reinterpret_cast<uintptr_t>(scratch.data()) % 64;
    convolution(shape.input, shape.weight, shape.result, shape.strides, shape.dilations, shape.pads,
                shape.groups, bytes, first.data(), second.data(), rounded.data(),
                scratch.data() + (64 - past) % 64);
    for (size_t i = 0; i < rounded.size(); ++i)
      ASSERT_NEAR(static_cast<float>(rounded[i]), numbers.computed[i],
                  std::fabs(numbers.computed[i]) / 256 + 1e-5);
  }
}

TEST(kernels_convolution, of_bfloat16) { check_narrow<bfloat16>(); }
TEST(kernels_convolution, of_float16) { check_narrow<float16>(); }

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
