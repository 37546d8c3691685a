// SPDX-License-Identifier: Apache-2.0
//
// A tensor is taken in parts of one size, each by one thread and in order; then the parts are added
// in order.
#include "runtime/observe/tensor_statistics.h"

#include "runtime/files/data_types.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <bit>

namespace trainc {
namespace {

constexpr int64_t part_elements = 1 << 14;
constexpr int64_t lanes = 8; // sums that go on side by side, so that a compiler can vectorise them
constexpr int64_t block_elements = 512; // a multiple of `lanes`
constexpr int64_t tables = 4;           // of counts: neighbours are often of one exponent

// Where elements are counted: by exponent, the negative ones first, and what has none.
constexpr int zero_bin = 2 * exponent_count, nan_bin = zero_bin + 1, infinite_bin = zero_bin + 2,
              negative_infinite_bin = zero_bin + 3;
constexpr int bin_count = negative_infinite_bin + 1;

int64_t parts_of(int64_t count) { return (count + part_elements - 1) / part_elements; }

struct lane_sums {
  double least[lanes], largest[lanes], sum[lanes] = {}, absolutes[lanes] = {}, squares[lanes] = {};
  double sketch[sketch_count][lanes] = {};
  int32_t counts[tables][bin_count] = {};

  lane_sums() {
    std::fill(least, least + lanes, std::numeric_limits<double>::infinity());
    std::fill(largest, largest + lanes, -std::numeric_limits<double>::infinity());
  }

  void add_to(tensor_statistics &to) const {
    for (int64_t i = 0; i < lanes; ++i) {
      to.sum += sum[i];
      to.sum_of_absolutes += absolutes[i];
      to.sum_of_squares += squares[i];
      to.least = std::min(to.least, least[i]);
      to.largest = std::max(to.largest, largest[i]);
      for (size_t k = 0; k < sketch_count; ++k)
        to.sketch[k] += sketch[k][i];
    }
    for (const auto &table : counts) {
      for (size_t e = 0; e < exponent_count; ++e) {
        to.negative[e] += table[e];
        to.positive[e] += table[exponent_count + e];
      }
      to.zeros += table[zero_bin];
      to.nans += table[nan_bin];
      to.infinities += table[infinite_bin] + table[negative_infinite_bin];
      to.negative_infinities += table[negative_infinite_bin];
    }
  }
};

// What differs between tensors of a block: its elements, their bins and the signs of their places.
struct element_block {
  alignas(64) double values[block_elements];
  alignas(64) int32_t bins[block_elements];
  alignas(64) uint32_t signs[block_elements];
  bool is_finite;
};

// This file is built without fused multiplications: the bits are those of any machine.
#if defined(__SANITIZE_THREAD__) // which is not there yet when a library chooses its clones
#define FOR_WIDE_VECTORS
#else
#define FOR_WIDE_VECTORS __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif

FOR_WIDE_VECTORS void find_bins(element_block &block) {
  for (int64_t i = 0; i < block_elements; ++i) {
    const auto bits = std::bit_cast<uint64_t>(block.values[i]);
    const auto high = static_cast<int32_t>(bits >> 32);
    const int32_t biased = (high >> 20) & 0x7ff;
    int32_t bin = biased - (1023 + lowest_exponent);
    bin = bin < 0 ? 0 : bin;
    bin = bin > exponent_count - 1 ? exponent_count - 1 : bin;
    bin += high < 0 ? 0 : exponent_count;
    bin = block.values[i] == 0 ? zero_bin : bin;
    const int32_t infinite = high < 0 ? negative_infinite_bin : infinite_bin;
    bin = biased == 0x7ff ? infinite : bin;
    block.bins[i] = block.values[i] != block.values[i] ? nan_bin : bin;
  }
  int32_t most = 0;
  for (int64_t i = 0; i < block_elements; ++i)
    most = block.bins[i] > most ? block.bins[i] : most;
  block.is_finite = most < nan_bin;
}

FOR_WIDE_VECTORS void find_signs(element_block &block, uint64_t first) {
  for (int64_t i = 0; i < block_elements; ++i)
    block.signs[i] = sketch_signs(first + static_cast<uint64_t>(i));
}

void find_transposed_signs(element_block &block, int64_t first, transposed_matrix matrix) {
  int64_t row = first / matrix.columns, column = first % matrix.columns;
  for (uint32_t &signs : block.signs) {
    signs = sketch_signs(static_cast<uint64_t>(column * matrix.rows + row));
    if (++column == matrix.columns) {
      column = 0;
      ++row;
    }
  }
}

// Sums that stay in registers over a block. `count` is a multiple of `lanes`.
using lane_numbers = double[lanes];

// What is not finite must be 0 in `values`.
FOR_WIDE_VECTORS void add_powers(const element_block &block, int64_t count, lane_sums &sums) {
  lane_numbers sum, absolutes, squares;
  std::copy(sums.sum, sums.sum + lanes, sum);
  std::copy(sums.absolutes, sums.absolutes + lanes, absolutes);
  std::copy(sums.squares, sums.squares + lanes, squares);
  for (int64_t first = 0; first < count; first += lanes)
    for (int64_t i = 0; i < lanes; ++i) {
      const double value = block.values[first + i];
      sum[i] += value;
      absolutes[i] += std::fabs(value);
      squares[i] += value * value;
    }
  std::copy(sum, sum + lanes, sums.sum);
  std::copy(absolutes, absolutes + lanes, sums.absolutes);
  std::copy(squares, squares + lanes, sums.squares);
}

FOR_WIDE_VECTORS void add_sketch(const element_block &block, int64_t count, int k,
                                 lane_sums &sums) {
  lane_numbers sketch;
  std::copy(sums.sketch[k], sums.sketch[k] + lanes, sketch);
  for (int64_t first = 0; first < count; first += lanes)
    for (int64_t i = 0; i < lanes; ++i) {
      const uint64_t minus = static_cast<uint64_t>((block.signs[first + i] >> k) & 1) << 63;
      sketch[i] += std::bit_cast<double>(std::bit_cast<uint64_t>(block.values[first + i]) ^ minus);
    }
  std::copy(sketch, sketch + lanes, sums.sketch[k]);
}

FOR_WIDE_VECTORS void add_bounds(const element_block &block, int64_t count, lane_sums &sums) {
  lane_numbers least, largest;
  std::copy(sums.least, sums.least + lanes, least);
  std::copy(sums.largest, sums.largest + lanes, largest);
  for (int64_t first = 0; first < count; first += lanes)
    for (int64_t i = 0; i < lanes; ++i) {
      const double value = block.values[first + i];
      least[i] = value < least[i] ? value : least[i];
      largest[i] = value > largest[i] ? value : largest[i];
    }
  std::copy(least, least + lanes, sums.least);
  std::copy(largest, largest + lanes, sums.largest);
}

// The first `count` elements of the block, whose others are 0.
void add_block(element_block &block, int64_t count, lane_sums &sums) {
  find_bins(block);
  for (int64_t i = 0; i < count / tables * tables; i += tables)
    for (int64_t table = 0; table < tables; ++table)
      ++sums.counts[table][block.bins[i + table]];
  for (int64_t i = count / tables * tables; i < count; ++i)
    ++sums.counts[0][block.bins[i]];
  const int64_t whole = count / lanes * lanes;
  if (block.is_finite && whole == count) {
    add_bounds(block, count, sums);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      double &value = block.values[i];
      if (block.bins[i] >= nan_bin) {
        value = 0;
        continue;
      }
      sums.least[i % lanes] = std::min(sums.least[i % lanes], value);
      sums.largest[i % lanes] = std::max(sums.largest[i % lanes], value);
    }
  }
  const int64_t filled = whole == count ? count : whole + lanes;
  add_powers(block, filled, sums);
  for (int k = 0; k < sketch_count; ++k)
    add_sketch(block, filled, k, sums);
}

} // namespace

double tensor_statistics::deviation() const {
  const double square = sum_of_squares / static_cast<double>(finite()) - mean() * mean();
  return std::sqrt(std::max(square, 0.0));
}

void tensor_statistics::add(const tensor_statistics &next) {
  count += next.count;
  zeros += next.zeros;
  nans += next.nans;
  infinities += next.infinities;
  negative_infinities += next.negative_infinities;
  least = std::min(least, next.least);
  largest = std::max(largest, next.largest);
  sum += next.sum;
  sum_of_absolutes += next.sum_of_absolutes;
  sum_of_squares += next.sum_of_squares;
  for (size_t k = 0; k < sketch.size(); ++k)
    sketch[k] += next.sketch[k];
  for (size_t e = 0; e < negative.size(); ++e) {
    negative[e] += next.negative[e];
    positive[e] += next.positive[e];
  }
}

statistics_taker::statistics_taker(int64_t most_elements)
    : of_parts_(static_cast<size_t>(parts_of(most_elements))) {}

template <typename Element>
tensor_statistics statistics_taker::take(int64_t count, transposed_matrix matrix,
                                         const Element &element) {
  const int64_t parts = parts_of(count);
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    lane_sums sums;
    element_block block;
    const int64_t begin = part * part_elements, end = std::min(begin + part_elements, count);
    for (int64_t first = begin; first < end; first += block_elements) {
      const int64_t taken = std::min(block_elements, end - first);
      if (taken == block_elements) { // a loop that can be vectorised
        for (int64_t i = 0; i < block_elements; ++i)
          block.values[i] = element(first + i);
      } else {
        for (int64_t i = 0; i < block_elements; ++i)
          block.values[i] = i < taken ? element(first + i) : 0;
      }
      if (matrix.rows == 0)
        find_signs(block, static_cast<uint64_t>(first));
      else
        find_transposed_signs(block, first, matrix);
      add_block(block, taken, sums);
    }
    tensor_statistics &of = of_parts_[static_cast<size_t>(part)];
    of = {};
    of.count = end - begin;
    sums.add_to(of);
    note_work();
  }
  tensor_statistics all;
  for (int64_t part = 0; part < parts; ++part)
    all.add(of_parts_[static_cast<size_t>(part)]);
  return all;
}

tensor_statistics statistics_taker::of(data_type type, const char *data, int64_t count,
                                       double scale, transposed_matrix matrix) {
  return with_type(type, [&](auto zero) {
    const auto *elements = reinterpret_cast<const decltype(zero) *>(data);
    return take(count, matrix, [&](int64_t i) { return static_cast<double>(elements[i]) * scale; });
  });
}

tensor_statistics statistics_taker::of_difference(data_type type, const char *now,
                                                  const char *before, int64_t count,
                                                  transposed_matrix matrix) {
  auto take_as = [&](auto example) {
    using element = decltype(example);
    const auto *of_now = reinterpret_cast<const element *>(now);
    const auto *of_before = reinterpret_cast<const element *>(before);
    return take(count, matrix, [&](int64_t i) {
      return static_cast<double>(of_now[i]) - static_cast<double>(of_before[i]);
    });
  };
  return type == data_type::f64 ? take_as(double()) : take_as(float());
}

} // namespace trainc
