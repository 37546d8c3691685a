// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions: every 61st f32 and the special values against f64, in the
// error that math.h states; the same bits in a simd loop and one by one.
#include "runtime/kernels/math.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace {

using trainc::maximum;

// Distance in units of the last place of the correctly rounded result.
double ulp_error(float found, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(found) || std::isnan(rounded))
    return std::isnan(found) == std::isnan(rounded) ? 0 : INFINITY;
  if (std::isinf(found) || std::isinf(rounded))
    return found == rounded ? 0 : INFINITY;
  const float above = std::nextafter(std::abs(rounded), INFINITY);
  const double ulp = static_cast<double>(above) - std::abs(static_cast<double>(rounded));
  return std::abs(static_cast<double>(found) - exact) / ulp;
}

constexpr uint32_t stride = 61; // prime: every exponent, all low bits

struct worst {
  double error = 0;
  float x = 0;
};

template <typename Function, typename Exact> worst measure(Function function, Exact exact) {
  worst result;
  constexpr int block = 4096;
  std::vector<float> x(block), y(block);
  for (uint64_t first = 0; first < (uint64_t(1) << 32); first += uint64_t(stride) * block) {
    for (int i = 0; i < block; ++i)
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(first + uint64_t(stride) * i));
    float *const from = x.data(), *const to = y.data();
#pragma omp simd
    for (int i = 0; i < block; ++i)
      to[i] = function(from[i]);
    for (int i = 0; i < block; ++i) {
      const double error = ulp_error(y[i], exact(static_cast<double>(x[i])));
      if (error > result.error)
        result = {error, x[i]};
    }
  }
  return result;
}

#define EXPECT_ULP(function, bound)                                                                \
  do {                                                                                             \
    const worst result = measure([](float x) { return trainc::function(x); },                      \
                                 [](double x) { return std::function(x); });                       \
    RecordProperty("worst_ulp", std::to_string(result.error));                                     \
    EXPECT_LE(result.error, bound) << "at " << result.x;                                           \
  } while (false)

TEST(kernels_math, exp) { EXPECT_ULP(exp, 1.1); }
TEST(kernels_math, log) { EXPECT_ULP(log, 1.0); }
TEST(kernels_math, log1p) { EXPECT_ULP(log1p, 1.4); }
TEST(kernels_math, tanh) { EXPECT_ULP(tanh, 2.0); }
TEST(kernels_math, erf) { EXPECT_ULP(erf, 2.0); }
TEST(kernels_math, sin) { EXPECT_ULP(sin, 0.6); }
TEST(kernels_math, cos) { EXPECT_ULP(cos, 0.6); }
TEST(kernels_math, atan) { EXPECT_ULP(atan, 1.4); }
TEST(kernels_math, expm1) { EXPECT_ULP(expm1, 1.5); }
TEST(kernels_math, asin) { EXPECT_ULP(asin, 2.4); }
TEST(kernels_math, acos) { EXPECT_ULP(acos, 1.2); }
TEST(kernels_math, cube) {
  const worst result = measure([](float x) { return trainc::pow(x, 3.0f); },
                               [](double x) { return std::pow(x, 3.0); });
  EXPECT_LE(result.error, 1.0) << "at " << result.x;
}

TEST(kernels_math, pow) {
  const float special[] = {0.0f,     -0.0f,     1.0f,  -1.0f, 2.0f,   -2.0f, 0.5f,
                           -0.5f,    3.0f,      -3.0f, 2.5f,  1e-40f, 1e30f, 1e-30f,
                           INFINITY, -INFINITY, NAN,   7.0f,  0.1f};
  for (float x : special)
    for (float e : special)
      EXPECT_LE(ulp_error(trainc::pow(x, e), std::pow(static_cast<double>(x), e)), 1.0)
          << x << " to " << e << " is " << trainc::pow(x, e);
  uint64_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float x = std::bit_cast<float>(static_cast<uint32_t>(state >> 33)); // positive
    const float e = static_cast<float>(static_cast<int64_t>(state << 20 >> 44)) / 5e4f - 10.0f;
    EXPECT_LE(ulp_error(trainc::pow(x, e), std::pow(static_cast<double>(x), e)), 1.0)
        << x << " to " << e;
  }
}

TEST(kernels_math, special_values) {
  EXPECT_EQ(trainc::exp(-INFINITY), 0.0f);
  EXPECT_EQ(trainc::exp(-3.4028235e38f), 0.0f);
  EXPECT_EQ(trainc::exp(-0x1.9fe36ap6f), 0.0f);
  EXPECT_EQ(trainc::exp(-0x1.9fe368p6f), 0x1p-149f);
  EXPECT_EQ(trainc::exp(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(trainc::exp(NAN)));
  EXPECT_EQ(trainc::exp(0.0f), 1.0f);
  EXPECT_EQ(trainc::log(0.0f), -INFINITY);
  EXPECT_EQ(trainc::log(1.0f), 0.0f);
  EXPECT_EQ(trainc::log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(trainc::log(-1.0f)));
  EXPECT_EQ(trainc::log1p(-1.0f), -INFINITY);
  EXPECT_EQ(trainc::log1p(INFINITY), INFINITY);
  EXPECT_EQ(trainc::log1p(1e-40f), 1e-40f);
  EXPECT_TRUE(std::signbit(trainc::log1p(-0.0f)));
  EXPECT_TRUE(std::isnan(trainc::log1p(-1.5f)) && std::isnan(trainc::log1p(NAN)));
  EXPECT_EQ(trainc::tanh(INFINITY), 1.0f);
  EXPECT_EQ(trainc::tanh(-INFINITY), -1.0f);
  EXPECT_EQ(trainc::erf(INFINITY), 1.0f);
  EXPECT_TRUE(std::signbit(trainc::erf(-0.0f)));
  EXPECT_TRUE(std::signbit(trainc::sin(-0.0f)));
  EXPECT_FALSE(std::signbit(trainc::sin(0.0f)));
  EXPECT_EQ(trainc::cos(-0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(trainc::sin(INFINITY)) && std::isnan(trainc::cos(-INFINITY)));
  // Of all f32 the nearest to multiples of pi / 2.
  for (float x : {0x1.f37c8ap+95f, 0x1.47d0fep+34f, 0x1.f37c8ap+96f, 0x1.f9cbe2p+7f}) {
    EXPECT_LE(ulp_error(trainc::sin(x), std::sin(static_cast<double>(x))), 0.6) << x;
    EXPECT_LE(ulp_error(trainc::cos(x), std::cos(static_cast<double>(x))), 0.6) << x;
  }
  EXPECT_EQ(trainc::atan(INFINITY), 1.57079637f);
  EXPECT_EQ(trainc::atan(-INFINITY), -1.57079637f);
  EXPECT_TRUE(std::signbit(trainc::atan(-0.0f)));
  EXPECT_EQ(trainc::expm1(-INFINITY), -1.0f);
  EXPECT_EQ(trainc::expm1(INFINITY), INFINITY);
  EXPECT_TRUE(std::signbit(trainc::expm1(-0.0f)));
  EXPECT_EQ(trainc::asin(1.0f), 1.57079637f);
  EXPECT_TRUE(std::signbit(trainc::asin(-0.0f)));
  EXPECT_EQ(trainc::acos(1.0f), 0.0f);
  EXPECT_EQ(trainc::acos(-1.0f), 3.14159274f);
  EXPECT_TRUE(std::isnan(trainc::asin(1.0000001f)) && std::isnan(trainc::acos(-1.5f)));
  EXPECT_TRUE(std::isnan(trainc::expm1(NAN)) && std::isnan(trainc::acos(NAN)));
  EXPECT_TRUE(std::isnan(maximum(NAN, 1.0f)) && std::isnan(maximum(1.0f, NAN)));
}

// Vector body and remainder: the same numbers at every offset of an array.
TEST(kernels_math, same_bits_alone) {
  std::vector<float> x(1003), y(1003);
  for (int i = 0; i < 1003; ++i)
    x[i] = static_cast<float>(i - 500) * 0.0173f;
  float *const from = x.data(), *const to = y.data();
#pragma omp simd
  for (int i = 0; i < 1003; ++i)
    to[i] = trainc::exp(from[i]) + trainc::erf(from[i]) * trainc::tanh(from[i]) +
            trainc::log1p(trainc::abs(from[i]));
  for (int i = 0; i < 1003; ++i) {
    volatile float alone = x[i];
    const float a = alone;
    EXPECT_EQ(std::bit_cast<uint32_t>(to[i]),
              std::bit_cast<uint32_t>(trainc::exp(a) + trainc::erf(a) * trainc::tanh(a) +
                                      trainc::log1p(trainc::abs(a))));
  }
}

} // namespace
