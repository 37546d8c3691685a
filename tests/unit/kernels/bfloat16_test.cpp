// SPDX-License-Identifier: Apache-2.0
//
// bf16: rounding of every number, and products against plain loops in f64.
#include "runtime/kernels/bfloat16.h"
#include "runtime/kernels/matmul.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <omp.h>
#include <vector>

namespace {

using trainc::bfloat16;
using trainc::matmul_shape;

TEST(kernels_bfloat16, keeps_its_own_numbers) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    bfloat16 number;
    number.bits = static_cast<uint16_t>(bits);
    const float wide = number;
    if (std::isnan(wide))
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(wide))));
    else
      ASSERT_EQ(bfloat16(wide).bits, bits);
  }
}

TEST(kernels_bfloat16, rounds_to_the_nearest_and_to_even) {
  for (uint32_t bits = 0; bits < 0x7f7fu; ++bits) {
    auto number = [](uint32_t of_bits) {
      bfloat16 made;
      made.bits = static_cast<uint16_t>(of_bits);
      return static_cast<float>(made);
    };
    const float low = number(bits), high = number(bits + 1);
    const float middle = std::bit_cast<float>((bits << 16) + 0x8000u);
    ASSERT_EQ(bfloat16(middle).bits, bits % 2 ? bits + 1 : bits);
    ASSERT_EQ(static_cast<float>(bfloat16(std::nextafter(middle, low))), low);
    ASSERT_EQ(static_cast<float>(bfloat16(std::nextafter(middle, high))), high);
    ASSERT_EQ(bfloat16(-middle).bits, bfloat16(middle).bits | 0x8000u);
  }
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(3.4e38f))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

std::vector<bfloat16> random_bfloat16s(int64_t count, uint64_t state) {
  std::vector<bfloat16> list;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    list.emplace_back(static_cast<float>(static_cast<int64_t>(state >> 40) - (1 << 23)) /
                      (1 << 23));
  }
  return list;
}

struct bfloat16_product {
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

TEST(kernels_bfloat16, products_against_loops) {
  for (int64_t batch : {1, 3})
    for (auto [m, n, k] :
         {std::tuple{1, 1, 1}, {7, 5, 3}, {1, 33, 17}, {64, 1, 19}, {130, 70, 65}, {300, 280, 270}})
      for (int layout = 0; layout < 8; ++layout) {
        const bfloat16_product of = {
            bool(layout & 1), bool(layout & 2), bool(layout & 4), m, n, k, batch};
        const matmul_shape shape = of.shape();
        const auto a = random_bfloat16s(batch * m * k, 1), b = random_bfloat16s(batch * k * n, 2);
        std::vector<float> sums(static_cast<size_t>(batch * m * n), NAN);
        std::vector<bfloat16> rounded(sums.size());
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
                          std::abs(sum) / 256 + 1e-6 * static_cast<double>(k) + 1e-6);
            }
      }
}

} // namespace
