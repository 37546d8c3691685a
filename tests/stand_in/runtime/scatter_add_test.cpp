// SPDX-License-Identifier: Apache-2.0
//
// scatter_add on the device against its definition, a serial loop, bit for bit.
#include "runtime/kernels/scatter_add.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/radix_sort.h"
#include "runtime/cuda/streams.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace trainc {
namespace {

struct table_shape {
  int64_t count, rows, columns;
};

template <typename Index, typename T> struct element_types {
  using index = Index;
  using value = T;
};

template <typename Types> struct scatter_add_test : testing::Test {
  using Index = typename Types::index;
  using T = typename Types::value;

  // Some indexes are outside, and `spread` values of the others occur.
  void check(const table_shape &shape, int64_t spread, bool from_zero) {
    std::mt19937 random(static_cast<unsigned>(shape.count * 7 + shape.columns));
    std::vector<Index> indices(static_cast<size_t>(shape.count));
    for (Index &index : indices)
      index = static_cast<Index>(static_cast<int64_t>(random() % (spread + 2)) - 1) *
              static_cast<Index>(std::max<int64_t>(shape.rows / spread, 1));
    std::uniform_real_distribution<T> values(-1, 1);
    std::vector<T> updates(static_cast<size_t>(shape.count * shape.columns));
    std::vector<T> table(static_cast<size_t>(shape.rows * shape.columns));
    for (T &value : updates)
      value = values(random);
    for (T &value : table)
      value = values(random);

    std::vector<T> expected = from_zero ? std::vector<T>(table.size()) : table;
    for (int64_t i = 0; i < shape.count; ++i)
      if (int64_t row = indices[static_cast<size_t>(i)]; row >= 0 && row < shape.rows)
        for (int64_t j = 0; j < shape.columns; ++j)
          expected[static_cast<size_t>(row * shape.columns + j)] +=
              updates[static_cast<size_t>(i * shape.columns + j)];

    device_copy<Index> on_device(indices);
    device_copy<T> rows(updates), result(table);
    device_copy<char> sorting(std::vector<char>(
        static_cast<size_t>(std::max<int64_t>(radix_sort_bytes(shape.count), 1))));
    set_scratch(sorting.data());
    auto function = [](bool zero, auto... arguments) {
      zero ? scatter_add_from_zero(arguments...) : scatter_add(arguments...);
    };
    function(from_zero, shape.count, shape.rows, shape.columns,
             static_cast<const Index *>(on_device.data()), static_cast<const T *>(rows.data()),
             result.data());
    std::vector<T> found = result.values();
    EXPECT_EQ(memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0)
        << shape.count << " updates of " << shape.rows << " x " << shape.columns;
  }

  streams queues;
};

using all_types = testing::Types<element_types<int64_t, float>, element_types<int64_t, double>,
                                 element_types<int32_t, float>, element_types<int32_t, double>>;
TYPED_TEST_SUITE(scatter_add_test, all_types);

TYPED_TEST(scatter_add_test, matches_a_serial_loop) {
  // Sizes below and above a warp, a tile of the sort, one digit; rows that take wide
  // accesses and rows that do not.
  const table_shape shapes[] = {{1, 1, 1},     {5, 3, 4},    {33, 7, 3},      {100, 300, 132},
                                {2048, 20, 8}, {2500, 9, 1}, {300, 70000, 2}, {70, 256, 64}};
  for (const table_shape &shape : shapes)
    for (bool from_zero : {false, true})
      this->check(shape, std::min<int64_t>(shape.rows, 17), from_zero);
}

TYPED_TEST(scatter_add_test, adds_all_to_one_row) { this->check({300, 4, 36}, 1, false); }

TYPED_TEST(scatter_add_test, does_nothing_without_updates) {
  this->check({0, 3, 4}, 1, false);
  this->check({0, 3, 4}, 1, true);
}

} // namespace
} // namespace trainc
