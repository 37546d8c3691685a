// SPDX-License-Identifier: Apache-2.0
//
// Newton and Schulz's iteration on the device: singular values of wide, tall and square matrices
// come near 1, a matrix of zeros stays, and what is not a matrix is copied.
#include "runtime/kernels/orthogonalize.h"

#include "tests/stand_in/runtime/device_copy.h"
#include "tests/stand_in/runtime/planned_products.h"

#include <cmath>
#include <gtest/gtest.h>

namespace trainc {
namespace {

template <typename T> struct orthogonalize_test : testing::Test {};
using both_types = testing::Types<float, double>;
TYPED_TEST_SUITE(orthogonalize_test, both_types);

TYPED_TEST(orthogonalize_test, singular_values) {
  const std::initializer_list<int64_t> matrices = {16, 5, 40, 224, 33, 7, 464, 8, 8, 528, 4, 4};
  constexpr int64_t elements = 560;
  std::vector<TypeParam> x(elements, TypeParam(0));
  for (int64_t i = 0; i < 528; ++i)
    x[static_cast<size_t>(i)] = static_cast<TypeParam>((i * i * 13 + i * 37) % 101 / 64.0 - 0.75);
  int64_t scratch_elements = 0;
  for (const int64_t *at = matrices.begin(); at != matrices.end(); at += 3)
    scratch_elements = std::max(scratch_elements, orthogonalize_scratch(at[1], at[2]).end);
  device_copy<TypeParam> on_device(x), result(x);
  device_copy<TypeParam> scratch(std::vector<TypeParam>(static_cast<size_t>(scratch_elements)));
  run_planned([&] {
    orthogonalize(matrices, elements, static_cast<const TypeParam *>(on_device.data()),
                  result.data(), scratch.data());
  });
  const std::vector<TypeParam> found = result.values();
  for (int64_t i = 0; i < 16; ++i)
    EXPECT_EQ(found[static_cast<size_t>(i)], x[static_cast<size_t>(i)]);
  for (int64_t i = 528; i < elements; ++i)
    EXPECT_EQ(found[static_cast<size_t>(i)], 0);
  // The Frobenius norm of the result is between the roots of the rank times what Muon's polynomial
  // leaves.
  for (const int64_t *at = matrices.begin(); at != matrices.end() - 3; at += 3) {
    double sum = 0;
    for (int64_t i = 0; i < at[1] * at[2]; ++i)
      sum += std::pow(static_cast<double>(found[static_cast<size_t>(at[0] + i)]), 2);
    const auto rank = static_cast<double>(std::min(at[1], at[2]));
    EXPECT_GT(sum, 0.4 * rank) << at[1] << " x " << at[2];
    EXPECT_LT(sum, 1.5 * rank) << at[1] << " x " << at[2];
  }
}

} // namespace
} // namespace trainc
