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

int64_t parts_of(int64_t count) { return (count + part_elements - 1) / part_elements; }

// Of finite numbers that are not zero.
size_t exponent_place(double value) {
  const auto biased = static_cast<int>((std::bit_cast<uint64_t>(value) >> 52) & 0x7ff);
  return static_cast<size_t>(std::clamp(biased - 1023, lowest_exponent, highest_exponent) -
                             lowest_exponent);
}

struct lane_sums {
  double least[lanes], largest[lanes], sum[lanes] = {}, absolutes[lanes] = {}, squares[lanes] = {};
  double sketch[sketch_count][lanes] = {};

  lane_sums() {
    std::fill(least, least + lanes, std::numeric_limits<double>::infinity());
    std::fill(largest, largest + lanes, -std::numeric_limits<double>::infinity());
  }

  // `signs` are those of the elements' places; what is not finite must be 0 in `values`, and NaN in
  // `bounds`.
  void add(const double *values, const double *bounds, const uint32_t *signs) {
    for (int64_t i = 0; i < lanes; ++i) {
      const double value = values[i];
      sum[i] += value;
      absolutes[i] += std::fabs(value);
      squares[i] += value * value;
      least[i] = bounds[i] < least[i] ? bounds[i] : least[i];
      largest[i] = bounds[i] > largest[i] ? bounds[i] : largest[i];
    }
    for (int k = 0; k < sketch_count; ++k)
      for (int64_t i = 0; i < lanes; ++i)
        sketch[k][i] += values[i] * (1.0 - 2.0 * static_cast<int>((signs[i] >> k) & 1));
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
  }
};

// Counts the element. Returns whether it is finite.
bool count(double value, tensor_statistics &to) {
  if (std::isnan(value))
    return ++to.nans, false;
  if (std::isinf(value))
    return ++to.infinities, false;
  if (value == 0)
    ++to.zeros;
  else
    ++(value < 0 ? to.negative : to.positive)[exponent_place(value)];
  return true;
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
    tensor_statistics &of = of_parts_[static_cast<size_t>(part)];
    of = {};
    lane_sums sums;
    const int64_t begin = part * part_elements, end = std::min(begin + part_elements, count);
    of.count = end - begin;
    for (int64_t first = begin; first < end; first += lanes) {
      double values[lanes] = {}, bounds[lanes];
      uint32_t signs[lanes] = {};
      std::fill(bounds, bounds + lanes, std::numeric_limits<double>::quiet_NaN());
      const int64_t taken = std::min(lanes, end - first);
      for (int64_t i = 0; i < taken; ++i) {
        const int64_t place = first + i;
        const double value = element(place);
        if (trainc::count(value, of))
          values[i] = bounds[i] = value;
        signs[i] = sketch_signs(static_cast<uint64_t>(
            matrix.rows == 0 ? place
                             : place % matrix.columns * matrix.rows + place / matrix.columns));
      }
      sums.add(values, bounds, signs);
    }
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
