// SPDX-License-Identifier: Apache-2.0
//
// Norms and broadcasts by segment on the device against serial loops.
#include "runtime/kernels/segments.h"

#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <cmath>
#include <gtest/gtest.h>

namespace trainc {
namespace {

constexpr int64_t pieces = 5;

// Gaps in front, between and behind; an empty segment; one of more elements than a block has
// threads for in all its pieces.
const std::vector<int64_t> bounds = {3, 4, 4, 40, 48, 48, 64, 3000, 3008, 3010};
constexpr int64_t elements = 3020;

template <typename T> struct segments_test : testing::Test { streams queues; };
using all_types = testing::Types<float, double>;
TYPED_TEST_SUITE(segments_test, all_types);

TYPED_TEST(segments_test, norms) {
  const int64_t count = static_cast<int64_t>(bounds.size()) / 2;
  std::vector<TypeParam> x(elements);
  for (int64_t i = 0; i < elements; ++i)
    x[static_cast<size_t>(i)] = static_cast<TypeParam>((i * 37 % 101) / 64.0 - 0.5);
  device_copy<TypeParam> on_device(x);
  device_copy<int64_t> segments(bounds);
  device_copy<double> norms(std::vector<double>(static_cast<size_t>(count), -1));
  device_copy<double> scratch(std::vector<double>(static_cast<size_t>(count * pieces), -1));
  segment_norms(count, pieces, elements, static_cast<const TypeParam *>(on_device.data()),
                static_cast<const int64_t *>(segments.data()), norms.data(),
                reinterpret_cast<char *>(scratch.data()));
  const std::vector<double> found = norms.values();
  for (size_t s = 0; s < found.size(); ++s) {
    double sum = 0;
    for (int64_t i = bounds[2 * s]; i < bounds[2 * s + 1]; ++i)
      sum += static_cast<double>(x[static_cast<size_t>(i)]) * x[static_cast<size_t>(i)];
    EXPECT_NEAR(found[s], std::sqrt(sum), 1e-12 * std::sqrt(sum)) << "segment " << s;
  }
}

TYPED_TEST(segments_test, broadcast) {
  const std::vector<TypeParam> values = {2, -3, 5, 7, 11};
  std::vector<TypeParam> expected(elements);
  for (size_t s = 0; s < values.size(); ++s)
    for (int64_t i = bounds[2 * s]; i < bounds[2 * s + 1]; ++i)
      expected[static_cast<size_t>(i)] = values[s];
  device_copy<TypeParam> numbers(values);
  device_copy<TypeParam> result(std::vector<TypeParam>(elements, -1));
  device_copy<int64_t> segments(bounds);
  segment_broadcast(static_cast<int64_t>(values.size()), elements,
                    static_cast<const TypeParam *>(numbers.data()),
                    static_cast<const int64_t *>(segments.data()), result.data());
  EXPECT_EQ(result.values(), expected);
}

} // namespace
} // namespace trainc
