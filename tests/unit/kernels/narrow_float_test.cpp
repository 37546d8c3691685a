// SPDX-License-Identifier: Apache-2.0
//
// bf16 and f16: rounding of every number, and products against plain loops in f64: of three of
// eight layouts each, LONG=1: of all.
#include "runtime/cpu/narrow_lines.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/narrow_float.h"
#include "tests/unit/sample.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <omp.h>
#include <vector>

namespace {

using trainc::bfloat16;
using trainc::float16;
using trainc::matmul_shape;

// What the two formats differ in: digits after the first, the exponent of the least normal number.
struct brain_format {
  using number = bfloat16;
  static constexpr int digits = 7, least_exponent = -126;
};
struct ieee_format {
  using number = float16;
  static constexpr int digits = 10, least_exponent = -14;
};

template <typename Format> class kernels_narrow_float : public testing::Test {
protected:
  using number = typename Format::number;
  static constexpr uint32_t infinite = 0x8000u - (1u << Format::digits);

  static number of_bits(uint32_t bits) {
    number made;
    made.bits = static_cast<uint16_t>(bits);
    return made;
  }
  static float value(uint32_t bits) { return of_bits(bits); }
  // By the definition of the format.
  static double defined(uint32_t bits) {
    const uint32_t exponent = bits >> Format::digits,
                   fraction = bits & ((1u << Format::digits) - 1);
    const double digits = fraction + (exponent > 0 ? 1u << Format::digits : 0u);
    const int above = exponent > 0 ? static_cast<int>(exponent) - 1 : 0;
    return std::ldexp(digits, Format::least_exponent - Format::digits + above);
  }
};

using formats = testing::Types<brain_format, ieee_format>;
TYPED_TEST_SUITE(kernels_narrow_float, formats);

TYPED_TEST(kernels_narrow_float, has_the_numbers_of_its_format) {
  for (uint32_t bits = 0; bits < this->infinite; ++bits) {
    ASSERT_EQ(static_cast<double>(this->value(bits)), this->defined(bits));
    ASSERT_EQ(static_cast<double>(this->value(bits | 0x8000u)), -this->defined(bits));
  }
  EXPECT_TRUE(std::isinf(this->value(this->infinite)));
}

TYPED_TEST(kernels_narrow_float, keeps_its_own_numbers) {
  using number = typename TypeParam::number;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const float wide = this->of_bits(bits);
    if ((bits & 0x7fffu) > this->infinite) {
      ASSERT_TRUE(std::isnan(wide));
      ASSERT_TRUE(std::isnan(static_cast<float>(number(wide))));
    } else {
      ASSERT_EQ(number(wide).bits, bits);
      ASSERT_EQ(number::nearest(wide), wide);
    }
  }
}

TYPED_TEST(kernels_narrow_float, rounds_to_the_nearest_and_to_even) {
  using number = typename TypeParam::number;
  for (uint32_t bits = 0; bits < this->infinite - 1; ++bits) {
    const float low = this->value(bits), high = this->value(bits + 1);
    const auto middle = static_cast<float>((this->defined(bits) + this->defined(bits + 1)) / 2);
    ASSERT_EQ(number(middle).bits, bits % 2 ? bits + 1 : bits);
    ASSERT_EQ(static_cast<float>(number(std::nextafter(middle, low))), low);
    ASSERT_EQ(static_cast<float>(number(std::nextafter(middle, high))), high);
    ASSERT_EQ(number(-middle).bits, number(middle).bits | 0x8000u);
  }
}

TYPED_TEST(kernels_narrow_float, what_is_too_large_is_infinite) {
  using number = typename TypeParam::number;
  const double largest = this->defined(this->infinite - 1);
  const double step = largest - this->defined(this->infinite - 2);
  const auto bound = static_cast<float>(largest + step / 2); // infinity is the even one
  EXPECT_EQ(number(std::nextafter(bound, 0.0f)).bits, this->infinite - 1);
  for (float large : {bound, std::numeric_limits<float>::max(), INFINITY}) {
    EXPECT_EQ(number(large).bits, this->infinite);
    EXPECT_EQ(number(-large).bits, this->infinite | 0x8000u);
  }
  for (uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0x7fc00000u})
    EXPECT_TRUE(std::isnan(static_cast<float>(number(std::bit_cast<float>(nan)))));
}

TYPED_TEST(kernels_narrow_float, lines_have_the_bits_of_single_numbers) {
  using number = typename TypeParam::number;
  std::vector<number> numbers;
  std::vector<float> floats;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    numbers.push_back(this->of_bits(bits));
    const float value = numbers.back(), middle = value * (1 + std::ldexp(1.0f, -TypeParam::digits));
    floats.insert(floats.end(), {value, middle, std::nextafter(middle, INFINITY)});
  }
  std::vector<float> wide(numbers.size());
  std::vector<number> narrow(floats.size());
  trainc::convert_line(numbers.data(), wide.data(), static_cast<int64_t>(wide.size()) - 3);
  trainc::convert_line(floats.data(), narrow.data(), static_cast<int64_t>(narrow.size()) - 3);
  for (size_t i = 0; i + 3 < wide.size(); ++i)
    if (!std::isnan(wide[i])) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(static_cast<float>(numbers[i])));
    }
  for (size_t i = 0; i + 3 < narrow.size(); ++i)
    ASSERT_EQ(narrow[i].bits, number(floats[i]).bits);
}

template <typename Number> std::vector<Number> random_numbers(int64_t count, uint64_t state) {
  std::vector<Number> list;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    list.emplace_back(static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) /
                      (1 << 23));
  }
  return list;
}

struct narrow_product {
  bool transposes_a, transposes_b, transposes_c;
  int64_t m, n, k, batch;

  matmul_shape shape() const {
    matmul_shape of;
    of.m = m;
    of.n = n;
    of.k = k;
    of.batch[0] = batch;
    of.a.row_stride = transposes_a ? 1 : k;
    of.a.column_stride = transposes_a ? m : 1;
    of.b.row_stride = transposes_b ? 1 : n;
    of.b.column_stride = transposes_b ? k : 1;
    of.c.row_stride = transposes_c ? 1 : n;
    of.c.column_stride = transposes_c ? m : 1;
    of.a.batch_strides[0] = m * k;
    of.b.batch_strides[0] = k * n;
    of.c.batch_strides[0] = m * n;
    return of;
  }
};

TYPED_TEST(kernels_narrow_float, products_against_loops) {
  const std::vector<size_t> layouts = trainc::sample_of(3, 8);
  using number = typename TypeParam::number;
  for (int64_t batch : {1, 3})
    for (auto [m, n, k] :
         {std::tuple{1, 1, 1}, {7, 5, 3}, {1, 33, 17}, {64, 1, 19}, {130, 70, 65}, {300, 280, 270}})
      for (const size_t layout : layouts) {
        const narrow_product of = {
            bool(layout & 1), bool(layout & 2), bool(layout & 4), m, n, k, batch};
        const matmul_shape shape = of.shape();
        const auto a = random_numbers<number>(batch * m * k, 1),
                   b = random_numbers<number>(batch * k * n, 2);
        std::vector<float> sums(static_cast<size_t>(batch * m * n), NAN);
        std::vector<number> rounded(sums.size());
        omp_set_num_threads(2);
        trainc::matmul(shape, a.data(), b.data(), sums.data());
        trainc::matmul(shape, a.data(), b.data(), rounded.data());
        std::vector<float> twice = sums, other(sums.size());
        trainc::matmul_add(shape, a.data(), b.data(), twice.data());
        omp_set_num_threads(3);
        trainc::matmul(shape, a.data(), b.data(), other.data());
        ASSERT_EQ(std::memcmp(sums.data(), other.data(), sums.size() * sizeof(float)), 0);
        for (int64_t g = 0; g < batch; ++g)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < k; ++l)
                sum += static_cast<double>(a[static_cast<size_t>(
                           g * m * k + i * shape.a.row_stride + l * shape.a.column_stride)]) *
                       static_cast<double>(b[static_cast<size_t>(
                           g * k * n + l * shape.b.row_stride + j * shape.b.column_stride)]);
              const auto at = static_cast<size_t>(g * m * n + i * shape.c.row_stride +
                                                  j * shape.c.column_stride);
              ASSERT_NEAR(sums[at], sum, 1e-6 * static_cast<double>(k) + 1e-6);
              ASSERT_NEAR(twice[at], 2 * sum, 3e-6 * static_cast<double>(k) + 1e-6);
              ASSERT_NEAR(static_cast<float>(rounded[at]), sum,
                          std::ldexp(std::abs(sum), -TypeParam::digits - 1) +
                              1e-6 * static_cast<double>(k) + 1e-6);
            }
      }
}

} // namespace
