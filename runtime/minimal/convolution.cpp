// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of f32 where there is no math library, as matrix products: what the kernel meets of
// an image becomes columns in the call's scratch, as many points of the result at a time as fit.
// Each sum goes over the channels and taps, or over images and points, in order.
#include "runtime/kernels/convolution.h"
#include "runtime/cpu/row_products.h"

#include <algorithm>

namespace trainc {
namespace {

using computed = convolution_part;

// Calls visit(number of a point from `first` on, point of the input, count) for the points [first,
// end) of the result where the tap meets the input, and not padding: `count` points side by side,
// which meet every stride.of[2]th point of the input.
template <typename Visit>
void for_each_line(const convolution_space &space, int64_t tap, int64_t first, int64_t end,
                   const Visit &visit) {
  const auto &[input, kernel, result, stride, dilation, before] = space;
  const int64_t from[max_space] = {
      tap / (kernel.of[1] * kernel.of[2]) * dilation.of[0] - before.of[0],
      tap / kernel.of[2] % kernel.of[1] * dilation.of[1] - before.of[1],
      tap % kernel.of[2] * dilation.of[2] - before.of[2]};
  const int64_t step = stride.of[2];
  // Points of a line of the result that meet the input's line.
  const int64_t low = from[2] >= 0 ? 0 : (-from[2] + step - 1) / step;
  const int64_t high = from[2] >= input.of[2] ? 0 : (input.of[2] - 1 - from[2]) / step + 1;
  for (int64_t point = first; point < end;) {
    const int64_t line = point / result.of[2], begin = point % result.of[2];
    const int64_t i = from[0] + line / result.of[1] * stride.of[0];
    const int64_t j = from[1] + line % result.of[1] * stride.of[1];
    const int64_t length = std::min(result.of[2] - begin, end - point);
    const int64_t c = std::max(low, begin), count = std::min(high, begin + length) - c;
    if (i >= 0 && i < input.of[0] && j >= 0 && j < input.of[1] && count > 0)
      visit(point - first + c - begin, (i * input.of[1] + j) * input.of[2] + from[2] + c * step,
            count);
    point += length;
  }
}

// A group of an image.
struct group_part {
  const convolution_space &space;
  int64_t inputs, outputs;            // channels
  int64_t plane, taps, points, width; // of the input, the kernel, the result; of the columns

  int64_t rows() const { return inputs * taps; }

  template <typename Work> void for_each_width(const Work &work) const {
    for (int64_t first = 0; first < points; first += width)
      work(first, std::min(width, points - first));
  }
  void make_columns(const float *x, int64_t first, int64_t count, float *columns) const {
    const int64_t step = space.stride.of[2];
    for (int64_t row = 0; row < rows(); ++row) {
      const float *from = x + row / taps * plane;
      float *to = columns + row * count;
      std::fill_n(to, count, 0.0f);
      for_each_line(space, row % taps, first, first + count,
                    [&](int64_t at, int64_t met, int64_t length) {
                      for (int64_t c = 0; c < length; ++c)
                        to[at + c] = from[met + c * step];
                    });
    }
  }
  void add_columns(const float *columns, int64_t first, int64_t count, float *dx) const {
    const int64_t step = space.stride.of[2];
    for (int64_t row = 0; row < rows(); ++row) {
      float *to = dx + row / taps * plane;
      const float *from = columns + row * count;
      for_each_line(space, row % taps, first, first + count,
                    [&](int64_t at, int64_t met, int64_t length) {
                      for (int64_t c = 0; c < length; ++c)
                        to[met + c * step] += from[at + c];
                    });
    }
  }

  void add_result(const float *x, const float *w, float *y, float *columns) const {
    for_each_width([&](int64_t first, int64_t count) {
      make_columns(x, first, count, columns);
      multiply_rows('N', 'N', outputs, count, rows(), 1, w, rows(), columns, count, 0, y + first,
                    points);
    });
  }
  void add_input_gradient(const float *dy, const float *w, float *dx, float *columns) const {
    for_each_width([&](int64_t first, int64_t count) {
      multiply_rows('T', 'N', rows(), count, outputs, 1, w, rows(), dy + first, points, 0, columns,
                    count);
      add_columns(columns, first, count, dx);
    });
  }
  void add_weight_gradient(const float *x, const float *dy, float *dw, float *columns) const {
    for_each_width([&](int64_t first, int64_t count) {
      make_columns(x, first, count, columns);
      multiply_rows('N', 'T', outputs, rows(), count, 1, dy + first, points, columns, count, 1, dw,
                    rows());
    });
  }
};

void compute_convolution(computed what, const convolution_shape &shape, const float *first,
                         const float *second, float *to, int64_t scratch_bytes, char *scratch) {
  const convolution_space space(shape);
  const int rank = space_rank(shape);
  const int64_t images = shape.input.of[0], groups = shape.groups;
  group_part part = {space,
                     shape.weight.of[1],
                     shape.weight.of[0] / std::max<int64_t>(groups, 1),
                     space.input.count(),
                     space.kernel.count(),
                     space.result.count(),
                     0};
  std::fill_n(to,
              count_of(what == computed::result           ? shape.result
                       : what == computed::input_gradient ? shape.input
                                                          : shape.weight,
                       rank),
              0.0f);
  if (part.rows() == 0 || part.points == 0)
    return;
  // The scratch has at least the weights' size: a column fits.
  part.width = std::clamp<int64_t>(
      scratch_bytes / static_cast<int64_t>(sizeof(float)) / part.rows(), 1, part.points);
  auto *columns = reinterpret_cast<float *>(scratch);
  const int64_t of_input = part.inputs * part.plane, of_weight = part.outputs * part.rows(),
                of_result = part.outputs * part.points;
  for (int64_t image = 0; image < images; ++image)
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t number = image * groups + group;
      const int64_t x = number * of_input, w = group * of_weight, y = number * of_result;
      if (what == computed::result)
        part.add_result(first + x, second + w, to + y, columns);
      else if (what == computed::input_gradient)
        part.add_input_gradient(first + y, second + w, to + x, columns);
      else
        part.add_weight_gradient(first + x, second + y, to + w, columns);
    }
}

} // namespace

DEFINE_CONVOLUTIONS(float, float)

} // namespace trainc
