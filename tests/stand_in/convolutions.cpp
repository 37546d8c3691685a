// SPDX-License-Identifier: Apache-2.0
//
// Convolutions for cuDNN's callers, by plain loops with sums in f64. Every byte that one touches is
// checked as a kernel's would be.
#include "convolutions.h"
#include "memory.h"
#include "numbers.h"
#include "operations.h"
#include "report.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace trainc::stand_in {

namespace {

constexpr size_t space = 3; // dimensions, those of one point first

using points = std::array<int64_t, space>;

points in_space(const std::vector<int> &numbers, size_t skipped, int64_t otherwise) {
  points result;
  result.fill(otherwise);
  std::copy(numbers.begin() + static_cast<std::ptrdiff_t>(skipped), numbers.end(),
            result.end() - static_cast<std::ptrdiff_t>(numbers.size() - skipped));
  return result;
}

int64_t count_of(const points &sizes) { return sizes[0] * sizes[1] * sizes[2]; }

int64_t count_of(const std::vector<int> &sizes) {
  int64_t count = 1;
  for (int size : sizes)
    count *= size;
  return count;
}

double number_at(const char *data, cudnnDataType_t type, int64_t index, bool tf32) {
  if (type == CUDNN_DATA_DOUBLE)
    return reinterpret_cast<const double *>(data)[index];
  if (type == CUDNN_DATA_FLOAT) {
    const float number = reinterpret_cast<const float *>(data)[index];
    return tf32 ? rounded_to_tf32(number) : number;
  }
  const uint16_t bits = reinterpret_cast<const uint16_t *>(data)[index];
  return type == CUDNN_DATA_BFLOAT16 ? widened(bits) : widened_f16(bits);
}

void set_number(char *data, cudnnDataType_t type, int64_t index, double number) {
  const auto rounded = static_cast<float>(number);
  if (type == CUDNN_DATA_DOUBLE)
    reinterpret_cast<double *>(data)[index] = number;
  else if (type == CUDNN_DATA_FLOAT)
    reinterpret_cast<float *>(data)[index] = rounded;
  else
    reinterpret_cast<uint16_t *>(data)[index] =
        type == CUDNN_DATA_BFLOAT16 ? rounded_to_bf16(rounded) : rounded_to_f16(rounded);
}

struct loops {
  explicit loops(const convolution &c)
      : input(in_space(c.x_layout.sizes, 2, 1)), kernel(in_space(c.w_layout.sizes, 2, 1)),
        result(in_space(c.y_layout.sizes, 2, 1)), before(in_space(c.description.pads, 0, 0)),
        stride(in_space(c.description.strides, 0, 1)),
        dilation(in_space(c.description.dilations, 0, 1)), images(c.x_layout.sizes[0]),
        groups(c.description.groups), inputs(c.w_layout.sizes[1]),
        outputs(c.w_layout.sizes[0] / groups) {}

  // visit(element of x, of w, of y), of all that belong together.
  template <typename Visit> void each(const Visit &visit) const {
    for (int64_t image = 0; image < images; ++image)
      for (int64_t output = 0; output < groups * outputs; ++output)
        for (int64_t i = 0; i < inputs; ++i) {
          const int64_t channel = output / outputs * inputs + i;
          planes((image * groups * inputs + channel) * count_of(input),
                 (output * inputs + i) * count_of(kernel),
                 (image * groups * outputs + output) * count_of(result), visit);
        }
  }

  template <typename Visit> void planes(int64_t x, int64_t w, int64_t y, const Visit &visit) const {
    points tap, at;
    for (int64_t k = 0; k < count_of(kernel); ++k) {
      tap = {k / kernel[2] / kernel[1], k / kernel[2] % kernel[1], k % kernel[2]};
      for (int64_t point = 0; point < count_of(result); ++point) {
        at = {point / result[2] / result[1], point / result[2] % result[1], point % result[2]};
        bool inside = true;
        for (size_t d = 0; d < space; ++d) {
          at[d] = at[d] * stride[d] + tap[d] * dilation[d] - before[d];
          inside = inside && at[d] >= 0 && at[d] < input[d];
        }
        if (inside)
          visit(x + (at[0] * input[1] + at[1]) * input[2] + at[2], w + k, y + point);
      }
    }
  }

  points input, kernel, result, before, stride, dilation;
  int64_t images, groups, inputs, outputs; // of a group
};

struct tensor {
  char *data;
  int64_t count;
  const char *what;
};

// The elements of an operand.
std::vector<double> read(const tensor &from, cudnnDataType_t type, bool tf32) {
  read_range(from.data, static_cast<size_t>(from.count * size_of(type)), from.what);
  std::vector<double> numbers(static_cast<size_t>(from.count));
  for (int64_t i = 0; i < from.count; ++i)
    numbers[static_cast<size_t>(i)] = number_at(from.data, type, i, tf32);
  return numbers;
}

void refuse_overlap(const tensor &computed, const tensor &operand, int64_t size) {
  if (computed.data < operand.data + operand.count * size &&
      operand.data < computed.data + computed.count * size)
    fail(current_operation(), "the result overlaps an operand");
}

} // namespace

void compute(const convolution &c) {
  const cudnnDataType_t type = c.x_layout.type;
  const bool tf32 = type == CUDNN_DATA_FLOAT && c.description.math != CUDNN_FMA_MATH;
  // As if the algorithm had used it: nothing of the caller's may be in there.
  if (c.workspace_bytes > 0) {
    write_range(c.workspace, c.workspace_bytes, "the workspace");
    std::memset(c.workspace, 0xff, c.workspace_bytes);
  }
  const tensor x = {c.x, count_of(c.x_layout.sizes), "tensor x"};
  const tensor w = {c.w, count_of(c.w_layout.sizes), "tensor w"};
  const tensor y = {c.y, count_of(c.y_layout.sizes), "tensor y"};
  const bool is_y = c.computed == convolution_side::y, is_x = c.computed == convolution_side::x;
  const tensor &first = is_x ? y : x, &second = is_y || is_x ? w : y;
  const tensor &computed = is_y ? y : is_x ? x : w;
  refuse_overlap(computed, first, size_of(type));
  refuse_overlap(computed, second, size_of(type));
  const std::vector<double> a = read(first, type, tf32), b = read(second, type, tf32);
  std::vector<double> sums(static_cast<size_t>(computed.count));
  const auto at = [](int64_t index) { return static_cast<size_t>(index); };
  const loops all(c);
  if (is_y)
    all.each([&](int64_t i, int64_t j, int64_t k) { sums[at(k)] += a[at(i)] * b[at(j)]; });
  else if (is_x)
    all.each([&](int64_t i, int64_t j, int64_t k) { sums[at(i)] += a[at(k)] * b[at(j)]; });
  else
    all.each([&](int64_t i, int64_t j, int64_t k) { sums[at(j)] += a[at(i)] * b[at(k)]; });
  const std::vector<double> old =
      c.beta == 0 ? std::vector<double>() : read(computed, type, /*tf32=*/false);
  write_range(computed.data, static_cast<size_t>(computed.count * size_of(type)), computed.what);
  for (int64_t i = 0; i < computed.count; ++i)
    set_number(computed.data, type, i,
               c.alpha * sums[at(i)] + (c.beta == 0 ? 0 : c.beta * old[at(i)]));
}

} // namespace trainc::stand_in
