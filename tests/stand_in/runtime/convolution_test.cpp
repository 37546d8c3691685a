// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on the device against plain loops in f64: through cuDNN, and through products with
// room for all columns at once, for some images, for a part of one. And what becomes of the choice
// between the two.
#include "runtime/cuda/convolution_library.h"
#include "runtime/cuda/launch.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/stand_in/runtime/planned_products.h"
#include "tests/unit/kernels/plain_convolution.h"
#include "tests/unit/scratch_folder.h"

#include <cmath>
#include <gtest/gtest.h>
#include <type_traits>

namespace trainc {
namespace {

product_settings with_cudnn(bool cudnn) {
  product_settings settings = untimed();
  settings.cudnn = cudnn;
  return settings;
}

template <typename T> struct convolution_test : testing::Test {
  using sum = std::conditional_t<is_narrow_v<T>, float, T>;

  static int64_t scratch_bytes(const convolution_case &problem) {
    return convolution_scratch_bytes(problem.shape(), sizeof(sum)) +
           (is_narrow_v<T> ? convolution_widened_bytes(problem.shape()) : 0);
  }

  // What is computed, each time of `times`.
  template <typename To = sum>
  std::vector<std::vector<To>> compute(convolution_part part, const convolution_case &problem,
                                       const convolution_numbers &numbers, int64_t bytes,
                                       const product_settings &settings, int times = 1) {
    device_copy<T> first(std::vector<T>(numbers.first.begin(), numbers.first.end()));
    device_copy<T> second(std::vector<T>(numbers.second.begin(), numbers.second.end()));
    const std::vector<To> nothing(numbers.computed.size(), To(NAN));
    device_copy<To> computed(nothing);
    device_copy<char> scratch(std::vector<char>(static_cast<size_t>(bytes)));
    std::vector<std::vector<To>> found;
    const auto work = [&] {
      run_convolution(part, problem, bytes, first.data(), second.data(), computed.data(),
                      scratch.data());
    };
    run_planned(
        [&] {
          for (int i = 0; i < (only_planning() ? 1 : times); ++i) {
            work();
            if (only_planning())
              continue;
            found.push_back(computed.values());
            computed.set(nothing);
          }
        },
        settings);
    return found;
  }

  void check(convolution_part part, const convolution_case &problem, int64_t bytes, bool cudnn) {
    const convolution_numbers numbers(part, problem, sizeof(T) == 2 ? 8 : 20);
    const std::vector<sum> found =
        compute(part, problem, numbers, bytes, with_cudnn(cudnn)).front();
    double largest = 1e-3;
    for (double value : numbers.computed)
      largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(static_cast<double>(found[i]), numbers.computed[i],
                  (sizeof(T) == 8 ? 1e-13 : 1e-5) * largest)
          << "part " << static_cast<int>(part) << " of " << problem.input[1] << " -> "
          << problem.weight[0] << " channels, element " << i << ", scratch of " << bytes
          << (cudnn ? ", cuDNN" : ", products");
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
      for (bool cudnn : {false, true})
        if (is_small(problem)) {
          this->check(part, problem, this->scratch_bytes(problem), cudnn);
          ++checked;
        }
  EXPECT_GT(checked, 40);
}

TYPED_TEST(convolution_test, takes_as_many_columns_as_the_scratch_holds) {
  const convolution_case problem = {{5, 2, 9, 14}, {4, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 2};
  const int64_t column = (2 * 9 + 4) * static_cast<int64_t>(sizeof(typename TestFixture::sum));
  for (int64_t columns : {1, 50, 64, 130, 126 * 2, 126 * 3 + 1})
    for (convolution_part part : all_parts)
      for (bool cudnn : {false, true}) // which has its workspace elsewhere then
        this->check(part, problem, columns * column, cudnn);
}

const convolution_case ordinary = {{2, 6, 9, 7}, {4, 3, 3, 3}, {2, 1}, {1, 1}, {1, 1, 1, 1}, 2};

TYPED_TEST(convolution_test, gives_the_same_bits_100_times) {
  for (convolution_part part : all_parts)
    for (bool cudnn : {false, true}) {
      const convolution_numbers numbers(part, ordinary);
      const auto found = this->compute(part, ordinary, numbers, this->scratch_bytes(ordinary),
                                       with_cudnn(cudnn), 100);
      ASSERT_EQ(found.size(), 100u);
      for (const auto &again : found)
        ASSERT_EQ(again, found[0]) << "part " << static_cast<int>(part);
    }
}

TYPED_TEST(convolution_test, rounds_a_result_once) {
  if constexpr (is_narrow_v<TypeParam>) {
    const convolution_numbers numbers(convolution_part::result, ordinary, 8);
    const auto rounded =
        this->template compute<TypeParam>(convolution_part::result, ordinary, numbers,
                                          this->scratch_bytes(ordinary), with_cudnn(true));
    for (size_t i = 0; i < numbers.computed.size(); ++i) // sums of 27 products, exact in f32
      ASSERT_EQ(static_cast<float>(rounded[0][i]),
                static_cast<float>(TypeParam(static_cast<float>(numbers.computed[i]))));
  }
}

using f32_convolution_test = convolution_test<float>;

TEST_F(f32_convolution_test, rounds_operands_only_where_it_is_asked_for) {
  const convolution_numbers numbers(convolution_part::result, ordinary);
  product_settings settings = with_cudnn(true);
  settings.tf32 = true;
  const std::vector<float> found =
      compute(convolution_part::result, ordinary, numbers, scratch_bytes(ordinary), settings)[0];
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(found[i]) - numbers.computed[i]));
  EXPECT_LT(largest, 5e-3); // and without, 1e-5: matches_plain_loops
}

// ---- the choice

struct convolution_choice_test : f32_convolution_test {
  std::vector<float> compute_with(const product_settings &settings,
                                  const convolution_case &problem = ordinary) {
    const convolution_numbers numbers(convolution_part::result, problem);
    testing::internal::CaptureStderr();
    auto found =
        compute(convolution_part::result, problem, numbers, scratch_bytes(problem), settings);
    messages = testing::internal::GetCapturedStderr();
    return found[0];
  }

  product_settings kept_choice() const {
    product_settings settings;
    settings.choice_file = folder / "choices.txt";
    return settings;
  }
  bool goes_through_products() const { // where there is no cuDNN
    return messages.find("go through matrix products") != std::string::npos;
  }
  // Puts another algorithm into the file of choices, whose bytes are returned.
  std::string choose_in_file(const std::string &word) const {
    const std::string path = kept_choice().choice_file, text = read_bytes(path);
    const size_t library = text.find("; cuDNN") + 2, device = text.rfind("\n", library) + 1;
    const size_t problem = text.find("; ", library) + 2, algorithm = text.find("; ", problem) + 2;
    remembered_choices choices(text.substr(device, library - 2 - device),
                               text.substr(library, problem - 2 - library));
    choices.add_lines(text);
    choices.add(text.substr(problem, algorithm - 2 - problem), word);
    write_choices(path, choices);
    return read_bytes(path);
  }

  scratch_folder folder;
  std::string messages;
};

TEST_F(convolution_choice_test, is_kept_and_found_again) {
  const std::vector<float> first = compute_with(kept_choice());
  const std::string kept = read_bytes(kept_choice().choice_file);
  if (goes_through_products())
    GTEST_SKIP() << messages;
  EXPECT_NE(kept.find("; cuDNN 9"), std::string::npos) << kept;
  EXPECT_NE(kept.find("; convolution 2x6x9x7 with 4x3x3x3 to 2x4x5x7 "), std::string::npos) << kept;
  EXPECT_EQ(compute_with(kept_choice()), first);
  EXPECT_EQ(read_bytes(kept_choice().choice_file), kept);
  EXPECT_EQ(messages, "");
}

TEST_F(convolution_choice_test, another_one_in_the_file_is_obeyed) {
  compute_with(kept_choice());
  if (goes_through_products())
    GTEST_SKIP() << messages;
  for (const char *word : {"products", "algorithm_0"}) {
    const std::string changed = choose_in_file(word);
    compute_with(kept_choice());
    EXPECT_EQ(read_bytes(kept_choice().choice_file), changed);
  }
}

TEST_F(convolution_choice_test, an_algorithm_of_other_sums_is_not_taken_from_the_file) {
  compute_with(kept_choice());
  if (goes_through_products())
    GTEST_SKIP() << messages;
  choose_in_file("algorithm_6"); // Winograd
  compute_with(kept_choice());
  EXPECT_EQ(read_bytes(kept_choice().choice_file).find("algorithm_6"), std::string::npos);
}

TEST_F(convolution_choice_test, what_the_library_cannot_do_is_said) {
  const convolution_case uneven = {{1, 2, 5, 5}, {2, 2, 3, 3}, {1, 1}, {1, 1}, {0, 0, 2, 2}, 1};
  const convolution_case harmless = {{1, 2, 6, 6}, {2, 2, 3, 3}, {2, 2}, {1, 1}, {1, 1, 0, 0}, 1};
  compute_with(with_cudnn(true));
  if (goes_through_products())
    GTEST_SKIP() << messages;
  EXPECT_EQ(messages, "");
  compute_with(with_cudnn(true), harmless);
  EXPECT_EQ(messages, "");
  compute_with(with_cudnn(true), uneven);
  EXPECT_NE(messages.find("cuDNN has no algorithm of fixed order for the convolution 1x2x5x5"),
            std::string::npos)
      << messages;
  compute_with(with_cudnn(false), uneven);
  EXPECT_EQ(messages, "");
}

} // namespace
} // namespace trainc
