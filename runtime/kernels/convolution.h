// SPDX-License-Identifier: Apache-2.0
//
// Convolutions over one to three dimensions of space, and their gradients.
#pragma once

#include "runtime/kernels/narrow_float.h"
#include "runtime/kernels/space.h"

#include <cstdint>

namespace trainc {

// Batch, channels and space of a contiguous tensor; 0 after the last. Of weights: output
// channels, input channels of one group, kernel.
struct convolution_sizes {
  int64_t of[2 + max_space] = {};
};

// One number per dimension of space. Of pads: those before each dimension, then those after.
struct space_numbers {
  int64_t of[2 * max_space] = {};
};

// A convolution as nn.convolution describes it.
struct convolution_shape {
  convolution_sizes input, weight, result;
  space_numbers strides, dilations, pads;
  int64_t groups;
};

// What follows computes a convolution's result, the gradient of its input and that of its weight.
// The tensors are given in the order of the functions' names, the one that is computed last, and
// then memory of `scratch_bytes`, which a program plans as convolution_scratch_bytes says:
// less of it is slower, and runtime/minimal needs at least a column of a group. The order of every
// sum follows from the sizes alone.
#define DECLARE_CONVOLUTION(name, T, To, first, second, computed)                                  \
  void name(const convolution_sizes &input, const convolution_sizes &weight,                       \
            const convolution_sizes &result, const space_numbers &strides,                         \
            const space_numbers &dilations, const space_numbers &pads, int64_t groups,             \
            int64_t scratch_bytes, const T *first, const T *second, To *computed, char *scratch)

DECLARE_CONVOLUTION(convolution, float, float, x, w, y);
DECLARE_CONVOLUTION(convolution, double, double, x, w, y);
DECLARE_CONVOLUTION(convolution_input_gradient, float, float, dy, w, dx);
DECLARE_CONVOLUTION(convolution_input_gradient, double, double, dy, w, dx);
DECLARE_CONVOLUTION(convolution_weight_gradient, float, float, x, dy, dw);
DECLARE_CONVOLUTION(convolution_weight_gradient, double, double, x, dy, dw);
// Convolutions of 16 bits: sums are in f32, and rounded where the result has 16 bits. Their scratch
// has convolution_widened_bytes more.
DECLARE_CONVOLUTION(convolution, bfloat16, bfloat16, x, w, y);
DECLARE_CONVOLUTION(convolution, bfloat16, float, x, w, y);
DECLARE_CONVOLUTION(convolution_input_gradient, bfloat16, float, dy, w, dx);
DECLARE_CONVOLUTION(convolution_weight_gradient, bfloat16, float, x, dy, dw);
DECLARE_CONVOLUTION(convolution, float16, float16, x, w, y);
DECLARE_CONVOLUTION(convolution, float16, float, x, w, y);
DECLARE_CONVOLUTION(convolution_input_gradient, float16, float, dy, w, dx);
DECLARE_CONVOLUTION(convolution_weight_gradient, float16, float, x, dy, dw);

// ---- for the compiler and the implementations

enum class convolution_part { result, input_gradient, weight_gradient };

// The functions above out of a target's `compute_convolution(part, shape, first, second, computed,
// scratch_bytes, scratch)`.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define DEFINE_CONVOLUTION(name, part, T, To)                                                      \
  DECLARE_CONVOLUTION(name, T, To, first, second, computed) {                                      \
    compute_convolution(part, {input, weight, result, strides, dilations, pads, groups}, first,    \
                        second, computed, scratch_bytes, scratch);                                 \
  }
#define DEFINE_CONVOLUTIONS(T, Sum)                                                                \
  DEFINE_CONVOLUTION(convolution, convolution_part::result, T, T)                                  \
  DEFINE_CONVOLUTION(convolution_input_gradient, convolution_part::input_gradient, T, Sum)         \
  DEFINE_CONVOLUTION(convolution_weight_gradient, convolution_part::weight_gradient, T, Sum)
#define DEFINE_CONVOLUTIONS_OF_ALL_TYPES                                                           \
  DEFINE_CONVOLUTIONS(float, float)                                                                \
  DEFINE_CONVOLUTIONS(double, double)                                                              \
  DEFINE_CONVOLUTIONS(bfloat16, float)                                                             \
  DEFINE_CONVOLUTION(convolution, convolution_part::result, bfloat16, float)                       \
  DEFINE_CONVOLUTIONS(float16, float)                                                              \
  DEFINE_CONVOLUTION(convolution, convolution_part::result, float16, float)
// NOLINTEND(bugprone-macro-parentheses)

inline int space_rank(const convolution_shape &shape) {
  int rank = 0;
  while (rank < max_space && shape.strides.of[rank] != 0)
    ++rank;
  return rank;
}

inline int64_t count_of(const convolution_sizes &sizes, int rank) {
  int64_t count = 1;
  for (int d = 0; d < 2 + rank; ++d)
    count *= sizes.of[d];
  return count;
}

inline space_sizes in_space(const int64_t *numbers, int rank, int64_t otherwise) {
  space_sizes all = {{otherwise, otherwise, otherwise}};
  for (int d = 0; d < rank; ++d)
    all.of[max_space - rank + d] = numbers[d];
  return all;
}

// A convolution's numbers by dimension of space. Point p of the result and point k of the kernel
// meet at p * stride + k * dilation - before of the input.
struct convolution_space {
  explicit convolution_space(const convolution_shape &shape)
      : input(in_space(shape.input.of + 2, space_rank(shape), 1)),
        kernel(in_space(shape.weight.of + 2, space_rank(shape), 1)),
        result(in_space(shape.result.of + 2, space_rank(shape), 1)),
        stride(in_space(shape.strides.of, space_rank(shape), 1)),
        dilation(in_space(shape.dilations.of, space_rank(shape), 1)),
        before(in_space(shape.pads.of, space_rank(shape), 0)) {}

  space_sizes input, kernel, result, stride, dilation, before;
};

// The bytes of each tensor once more as a library lays it out: channels in blocks of 16. Those of a
// group have blocks of their own where that is no more than twice the memory.
inline int64_t convolution_scratch_bytes(const convolution_shape &shape, int64_t element_bytes) {
  constexpr int64_t block = 16, between_tensors = 4 * 64;
  const auto in_blocks = [](int64_t channels) { return (channels + block - 1) / block * block; };
  const convolution_space space(shape);
  const int64_t groups = shape.groups, images = shape.input.of[0];
  const int64_t inputs = shape.weight.of[1], outputs = shape.weight.of[0] / groups; // of a group
  const auto channels = [&](int64_t of_group) {
    return of_group < block ? in_blocks(groups * of_group) : groups * in_blocks(of_group);
  };
  const bool depthwise = groups > 1 && inputs == 1 && outputs == 1;
  const int64_t weights =
      depthwise ? in_blocks(groups) : groups * in_blocks(inputs) * in_blocks(outputs);
  const int64_t elements = images * channels(inputs) * space.input.count() +
                           images * channels(outputs) * space.result.count() +
                           weights * space.kernel.count();
  return elements * element_bytes + between_tensors;
}

// The three tensors in f32, for who cannot read 16 bits.
inline int64_t convolution_widened_bytes(const convolution_shape &shape) {
  constexpr int64_t between_tensors = 3 * 64;
  const int rank = space_rank(shape);
  return (count_of(shape.input, rank) + count_of(shape.weight, rank) +
          count_of(shape.result, rank)) *
             static_cast<int64_t>(sizeof(float)) +
         between_tensors;
}

} // namespace trainc
