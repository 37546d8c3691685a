// SPDX-License-Identifier: Apache-2.0
//
// Norms and broadcasts by segment on the device, means of squares and products of rows and columns,
// against serial loops.
#include "runtime/kernels/segments.h"

#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace trainc {
namespace {

constexpr int64_t pieces = 5;

// Gaps in front, between and after; an empty segment; one of more elements than a block has
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

template <typename T> std::vector<T> waves(int64_t count) {
  std::vector<T> list(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    list[static_cast<size_t>(i)] = static_cast<T>((i * 37 % 101) / 64.0 - 0.5);
  return list;
}

// Rows, columns and elements of matrices and of a vector; gaps between the results.
TYPED_TEST(segments_test, mean_squares) {
  const std::vector<int64_t> table = {3,    0,   2, 5,   300, 300, 1,   // rows
                                      3,    16,  2, 300, 1,   5,   300, // columns
                                      3005, 620, 1, 7,   1,   1,   1};  // elements
  constexpr int64_t count = 3, written = 630;
  const std::vector<TypeParam> x = waves<TypeParam>(elements);
  std::vector<double> expected(written);
  for (int64_t part = 0; part < count; ++part) {
    const int64_t *row = table.data() + part * mean_squares_columns;
    for (int64_t line = 0; line < row[2] * row[3]; ++line) {
      double sum = 0;
      for (int64_t k = 0; k < row[5]; ++k) {
        const auto at = static_cast<size_t>(row[0] + line / row[3] * row[3] * row[5] +
                                            line % row[3] * row[4] + k * row[6]);
        sum += static_cast<double>(x[at]) * x[at];
      }
      expected[static_cast<size_t>(row[1] + line)] = sum / static_cast<double>(row[5]);
    }
  }
  device_copy<TypeParam> on_device(x), result(std::vector<TypeParam>(written, -1));
  device_copy<int64_t> parts(table);
  segment_mean_squares(count, elements, written, static_cast<const TypeParam *>(on_device.data()),
                       static_cast<const int64_t *>(parts.data()), result.data());
  const std::vector<TypeParam> found = result.values();
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-7 * (expected[i] + 1e-3)) << i;
}

TYPED_TEST(segments_test, products) {
  const std::vector<int64_t> table = {2, 0, 4, 2, 3, 200, 1210, 7, -1, 1, 90, 1};
  constexpr int64_t count = 2, rows = 100, columns = 410;
  std::vector<TypeParam> row = waves<TypeParam>(rows), column = waves<TypeParam>(columns);
  std::vector<double> expected(1305);
  for (int64_t o = 0; o < 2; ++o) {
    double sum = 0;
    for (int64_t r = 0; r < 3; ++r)
      sum += row[static_cast<size_t>(o * 3 + r)];
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < 200; ++c)
        expected[static_cast<size_t>(2 + (o * 3 + r) * 200 + c)] =
            static_cast<double>(row[static_cast<size_t>(o * 3 + r)]) *
            column[static_cast<size_t>(4 + o * 200 + c)] / std::max(sum / 3, 0.25);
  }
  for (int64_t i = 0; i < 90; ++i)
    expected[static_cast<size_t>(1210 + i)] = row[static_cast<size_t>(7 + i)];
  device_copy<TypeParam> on_rows(row), on_columns(column), least({TypeParam(0.25)});
  device_copy<TypeParam> result(std::vector<TypeParam>(expected.size(), -1));
  device_copy<int64_t> parts(table);
  segment_product(count, rows, columns, static_cast<int64_t>(expected.size()),
                  static_cast<const TypeParam *>(on_rows.data()),
                  static_cast<const TypeParam *>(on_columns.data()),
                  static_cast<const TypeParam *>(least.data()),
                  static_cast<const int64_t *>(parts.data()), result.data());
  const std::vector<TypeParam> found = result.values();
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 2e-7 * (std::fabs(expected[i]) + 1e-3)) << i;
}

} // namespace
} // namespace trainc
