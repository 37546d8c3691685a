// SPDX-License-Identifier: Apache-2.0
//
// What is told of a tensor at one time. Sums are in f64 and in a fixed order: the bits do not
// depend on the number of threads.
#pragma once

#include "runtime/program.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace trainc {

// Sums of the elements with signs that follow from their places: how far two tensors are apart can
// be told from the sums alone. The mean of the squared differences of these sums is, in the mean
// over the choices of signs, the squared distance of the tensors in the 2-norm.
constexpr int sketch_count = 4;

// Of finite elements that are not zero, by floor(log2(|x|)), the first and last one included what
// lies beyond.
constexpr int lowest_exponent = -64, highest_exponent = 63;
constexpr int exponent_count = highest_exponent - lowest_exponent + 1;

struct tensor_statistics {
  int64_t count = 0, zeros = 0, nans = 0;
  int64_t infinities = 0, negative_infinities = 0; // of both signs; of them those below zero
  // Of finite elements; `least` is above `largest` where there is none.
  double least = std::numeric_limits<double>::infinity(), largest = -least;
  double sum = 0, sum_of_absolutes = 0, sum_of_squares = 0;
  std::array<double, sketch_count> sketch = {};
  std::array<int64_t, exponent_count> negative = {}, positive = {};

  int64_t finite() const { return count - nans - infinities; }
  double mean() const { return sum / static_cast<double>(finite()); }
  double mean_of_absolutes() const { return sum_of_absolutes / static_cast<double>(finite()); }
  double norm() const { return std::sqrt(sum_of_squares); }
  // Of all elements, as of a whole population.
  double deviation() const;

  void add(const tensor_statistics &next);
};

// The signs of element `place` in the sums of `sketch`: bit k set means minus in sum k. A hash of
// 32 bits (lowbias32 by Chris Wellons), so that other programs can have the same.
constexpr uint32_t sketch_signs(uint64_t place) {
  auto bits = static_cast<uint32_t>(place ^ (place >> 32));
  bits = (bits ^ (bits >> 16)) * 0x7feb352du;
  bits = (bits ^ (bits >> 15)) * 0x846ca68bu;
  return bits ^ (bits >> 16);
}

// A matrix that lies transposed in memory, as exporters write some weights: element [i, j] of
// memory is [j, i] of the tensor. No rows: it lies as it is.
struct transposed_matrix {
  int64_t rows = 0, columns = 0; // in memory
};

class statistics_taker {
public:
  // Of tensors with at most as many elements. Allocates nothing afterwards.
  explicit statistics_taker(int64_t most_elements);

  // Of the elements at `data`, times `scale`.
  tensor_statistics of(data_type type, const char *data, int64_t count, double scale = 1,
                       transposed_matrix matrix = {});
  // Of `now` minus `before`, both of the type (f32 or f64).
  tensor_statistics of_difference(data_type type, const char *now, const char *before,
                                  int64_t count, transposed_matrix matrix = {});

private:
  template <typename Element>
  tensor_statistics take(int64_t count, transposed_matrix matrix, const Element &element);

  std::vector<tensor_statistics> of_parts_;
};

} // namespace trainc
