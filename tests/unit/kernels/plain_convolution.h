// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of all kinds, and what they give by plain loops.
#pragma once

#include "runtime/kernels/convolution.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainc {

struct convolution_case {
  std::vector<int64_t> input, weight, strides, dilations, pads; // as in convolution_shape
  int64_t groups;

  size_t rank() const { return strides.size(); }

  convolution_shape shape() const {
    convolution_shape result = {};
    auto copy = [](const std::vector<int64_t> &from, int64_t *to) {
      for (size_t i = 0; i < from.size(); ++i)
        to[i] = from[i];
    };
    copy(input, result.input.of);
    copy(weight, result.weight.of);
    copy(strides, result.strides.of);
    copy(dilations, result.dilations.of);
    copy(pads, result.pads.of);
    result.groups = groups;
    result.result.of[0] = input[0];
    result.result.of[1] = weight[0];
    for (size_t d = 0; d < rank(); ++d)
      result.result.of[2 + d] =
          (input[2 + d] + pads[d] + pads[d + rank()] - (weight[2 + d] - 1) * dilations[d] - 1) /
              strides[d] +
          1;
    return result;
  }
};

inline std::vector<convolution_case> convolution_cases() {
  return {
      {{2, 3, 9, 7}, {4, 3, 3, 2}, {2, 1}, {1, 2}, {1, 0, 2, 1}, 1},
      {{1, 4, 5}, {6, 2, 3}, {1}, {1}, {1, 1}, 2},
      {{1, 1, 1}, {1, 1, 1}, {1}, {1}, {0, 0}, 1},
      {{1, 40, 75}, {40, 40, 9}, {1}, {3}, {12, 12}, 1},
      {{2, 5, 4, 5, 6}, {7, 5, 2, 3, 1}, {1, 2, 1}, {2, 1, 1}, {1, 1, 0, 0, 1, 2}, 1},
      {{3, 32, 9, 9}, {32, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 32}, // depthwise
      {{2, 30, 9, 9}, {60, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 30},
      {{2, 30, 9, 9}, {60, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 10},
      {{2, 64, 11, 11}, {96, 32, 3, 3}, {1, 1}, {2, 2}, {2, 2, 2, 2}, 2},
      {{4, 64, 8, 8}, {128, 64, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1},
      {{4, 64, 4, 4}, {64, 64, 3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1}, // few points
      {{3, 17, 13, 13}, {19, 17, 1, 1}, {2, 2}, {1, 1}, {0, 0, 0, 0}, 1},
      {{3, 17, 6, 7}, {18, 17, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 1}, // a matrix product
      {{2, 8, 6, 7}, {6, 4, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 2},
      {{32, 12, 32, 32}, {12, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 4}, // narrow groups
      {{2, 200, 14, 14}, {200, 100, 1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}, 2},
      {{2, 3, 32, 32}, {64, 3, 7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}, 1},
      {{0, 3, 4, 4}, {5, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, 1}, // no images
  };
}

inline size_t computed_count(convolution_part part, const convolution_case &problem) {
  const convolution_shape shape = problem.shape();
  const auto rank = static_cast<int>(problem.rank());
  return static_cast<size_t>(count_of(part == convolution_part::result           ? shape.result
                                      : part == convolution_part::input_gradient ? shape.input
                                                                                 : shape.weight,
                                      rank));
}

// x, w and y, of which one is computed from the others.
inline void convolve_plainly(convolution_part part, const convolution_case &problem,
                             std::vector<double> &x, std::vector<double> &w,
                             std::vector<double> &y) {
  const convolution_shape shape = problem.shape();
  const convolution_space space(shape);
  const int64_t inputs = shape.weight.of[1], outputs = shape.weight.of[0];
  std::vector<double> &computed = part == convolution_part::result           ? y
                                  : part == convolution_part::input_gradient ? x
                                                                             : w;
  computed.assign(computed.size(), 0.0);
  size_t out = 0;
  for (int64_t image = 0; image < shape.input.of[0]; ++image)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t point = 0; point < space.result.count(); ++point, ++out)
        for (int64_t i = 0; i < inputs; ++i)
          for (int64_t tap = 0; tap < space.kernel.count(); ++tap) {
            int64_t place = 0, stride = 1, rest = point, rest_tap = tap;
            bool inside = true;
            for (int d = max_space - 1; d >= 0; --d) {
              const int64_t at = rest % space.result.of[d] * space.stride.of[d] +
                                 rest_tap % space.kernel.of[d] * space.dilation.of[d] -
                                 space.before.of[d];
              inside = inside && at >= 0 && at < space.input.of[d];
              place += at * stride;
              stride *= space.input.of[d];
              rest /= space.result.of[d];
              rest_tap /= space.kernel.of[d];
            }
            if (!inside)
              continue;
            const int64_t channel = o / (outputs / shape.groups) * inputs + i;
            const auto in = static_cast<size_t>(
                (image * shape.input.of[1] + channel) * space.input.count() + place);
            const auto weight = static_cast<size_t>((o * inputs + i) * space.kernel.count() + tap);
            if (part == convolution_part::result)
              y[out] += x[in] * w[weight];
            else if (part == convolution_part::input_gradient)
              x[in] += y[out] * w[weight];
            else
              w[weight] += x[in] * y[out];
          }
}

// The function of runtime/kernels/convolution.h for `part`.
template <typename T, typename To>
void run_convolution(convolution_part part, const convolution_case &problem, int64_t scratch_bytes,
                     const T *first, const T *second, To *computed, char *scratch) {
  const convolution_shape shape = problem.shape();
  auto call = [&](auto function) {
    function(shape.input, shape.weight, shape.result, shape.strides, shape.dilations, shape.pads,
             shape.groups, scratch_bytes, first, second, computed, scratch);
  };
  if (part == convolution_part::result)
    return call([](auto... arguments) { convolution(arguments...); });
  if constexpr (!is_narrow_v<To>) { // gradients are sums
    if (part == convolution_part::input_gradient)
      call([](auto... arguments) { convolution_input_gradient(arguments...); });
    else
      call([](auto... arguments) { convolution_weight_gradient(arguments...); });
  }
}

// Random operands of a part, numbers of some bits, and what must come out of it.
struct convolution_numbers {
  std::vector<double> first, second, computed;

  convolution_numbers(convolution_part part, const convolution_case &problem, int bits = 20) {
    std::vector<double> x(computed_count(convolution_part::input_gradient, problem)),
        w(computed_count(convolution_part::weight_gradient, problem)),
        y(computed_count(convolution_part::result, problem));
    uint64_t state = 5;
    for (std::vector<double> *list : {&x, &w, &y})
      for (double &value : *list) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value =
            static_cast<double>(static_cast<int64_t>(state >> (64 - bits))) / (1 << (bits - 1)) - 1;
      }
    convolve_plainly(part, problem, x, w, y);
    first = part == convolution_part::input_gradient ? y : x;
    second = part == convolution_part::weight_gradient ? y : w;
    computed = part == convolution_part::result           ? y
               : part == convolution_part::input_gradient ? x
                                                          : w;
  }
};

constexpr convolution_part all_parts[] = {
    convolution_part::result, convolution_part::input_gradient, convolution_part::weight_gradient};

} // namespace trainc
