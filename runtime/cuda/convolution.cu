// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, through cuDNN where convolution_library.h says so, else as matrix products: what
// the kernel meets at each point of the result becomes a column, and cuBLASLt multiplies the
// columns by the weight. One more pass over memory than a fused kernel needs, but every order of
// summation is ours or that of a product, any pad, stride, dilation and type is alike, and nothing
// beside cuBLASLt has to be installed.
//
// Columns are made chunk by chunk, as many as the scratch holds. Sums over chunks add them in
// order.
#include "runtime/kernels/convolution.h"

#include "runtime/cuda/convolution_library.h"
#include "runtime/cuda/launch.h"
#include "runtime/failure.h"
#include "runtime/kernels/matmul.h"

#include <algorithm>
#include <type_traits>

namespace trainc {
namespace {

constexpr int block_threads = 256;
constexpr int64_t column_multiple = 64; // of a chunk within an image: rows stay aligned

// A chunk of columns, for the kernels and the products.
struct column_shape {
  explicit column_shape(const convolution_shape &shape)
      : space(shape), channels(shape.input.of[1]), outputs(shape.weight.of[0]),
        taps(space.kernel.count()), points(space.result.count()) {}

  convolution_space space;
  int64_t channels, outputs; // of the input, of the result
  int64_t taps, points;      // of the kernel, of the result in one image
  int64_t first_image = 0, images = 0;
  int64_t first = 0, count = 0; // points of each image: all, unless it is a single image
  int64_t columns = 0;          // images * count
};

// Where point `point` of the result and tap `tap` meet in an image of the input; -1 outside.
__device__ inline int64_t meeting(const convolution_space &space, int64_t point, int64_t tap) {
  int64_t place = 0;
  int64_t rest_point = point, rest_tap = tap, stride = 1;
  bool inside = true;
  for (int d = max_space - 1; d >= 0; --d) {
    const int64_t at = rest_point % space.result.of[d] * space.stride.of[d] +
                       rest_tap % space.kernel.of[d] * space.dilation.of[d] - space.before.of[d];
    inside &= at >= 0 && at < space.input.of[d];
    place += at * stride;
    stride *= space.input.of[d];
    rest_point /= space.result.of[d];
    rest_tap /= space.kernel.of[d];
  }
  return inside ? place : -1;
}

// columns [channel, tap][image, point], a thread for each element.
template <typename T> __global__ void make_columns(column_shape shape, const T *x, T *columns) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= shape.channels * shape.taps * shape.columns)
    return;
  const int64_t column = index % shape.columns, row = index / shape.columns;
  const int64_t image = shape.first_image + column / shape.count;
  const int64_t place = meeting(shape.space, shape.first + column % shape.count, row % shape.taps);
  columns[index] =
      place < 0
          ? T(0.0f)
          : x[(image * shape.channels + row / shape.taps) * shape.space.input.count() + place];
}

// Adds to each element of dx, or sets it to, the columns' elements that it went to, in order of
// taps. A thread for each element of the chunk's images.
template <typename T>
__global__ void add_columns(column_shape shape, bool adds, const T *columns, T *dx) {
  const int64_t plane = shape.space.input.count();
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= shape.images * shape.channels * plane)
    return;
  const int64_t image = index / plane / shape.channels, channel = index / plane % shape.channels;
  T *to = dx + shape.first_image * shape.channels * plane + index;
  T sum = adds ? *to : T(0);
  for (int64_t tap = 0; tap < shape.taps; ++tap) {
    int64_t rest = index % plane, rest_tap = tap, point = 0, stride = 1;
    bool meets = true;
    for (int d = max_space - 1; d >= 0; --d) {
      const int64_t from = rest % shape.space.input.of[d] + shape.space.before.of[d] -
                           rest_tap % shape.space.kernel.of[d] * shape.space.dilation.of[d];
      meets &= from >= 0 && from % shape.space.stride.of[d] == 0 &&
               from / shape.space.stride.of[d] < shape.space.result.of[d];
      point += from / shape.space.stride.of[d] * stride;
      stride *= shape.space.result.of[d];
      rest /= shape.space.input.of[d];
      rest_tap /= shape.space.kernel.of[d];
    }
    point -= shape.first;
    if (meets & (point >= 0) & (point < shape.count))
      sum += columns[(channel * shape.taps + tap) * shape.columns + image * shape.count + point];
  }
  *to = sum;
}

// gathered [channel][image, point] of dy, a thread for each element.
template <typename T> __global__ void gather_points(column_shape shape, const T *dy, T *gathered) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= shape.outputs * shape.columns)
    return;
  const int64_t column = index % shape.columns, output = index / shape.columns;
  const int64_t image = shape.first_image + column / shape.count;
  gathered[index] =
      dy[(image * shape.outputs + output) * shape.points + shape.first + column % shape.count];
}

unsigned blocks_for(int64_t threads) {
  const int64_t blocks = (threads + block_threads - 1) / block_threads;
  if (blocks > INT32_MAX)
    throw failure(exit_machine, "a convolution has more elements than a GPU's grid of blocks"
                                "\n  try: a smaller batch, or trainc --target cpu");
  return static_cast<unsigned>(blocks);
}

// Whether each point of the result meets the same point of the input alone: then the input takes
// the columns' place.
bool is_input(const convolution_shape &shape) {
  bool same = true;
  for (int d = 0; d < space_rank(shape); ++d)
    same &= shape.weight.of[2 + d] == 1 && shape.strides.of[d] == 1 &&
            shape.input.of[2 + d] == shape.result.of[2 + d] && shape.pads.of[d] == 0;
  return same;
}

// A convolution's products of one chunk, of operands T; their sums are of type Sum.
template <typename T, typename Sum> class chunk {
public:
  chunk(const convolution_shape &shape, const column_shape &columns)
      : shape_(shape), columns_(columns), groups_(shape.groups),
        outputs_(shape.weight.of[0] / shape.groups), rows_(shape.weight.of[1] * columns.taps) {}

  void make(const T *x, T *columns) const {
    const int64_t count = rows_ * groups_ * columns_.columns;
    launch("columns of a convolution", make_columns<T>, {blocks_for(count), block_threads},
           columns_, reads(x, input_count()), writes(columns, count));
  }

  void gather(const T *dy, T *gathered) const {
    const int64_t count = columns_.outputs * columns_.columns;
    launch("gradients of a convolution by channel", gather_points<T>,
           {blocks_for(count), block_threads}, columns_, reads(dy, result_count()),
           writes(gathered, count));
  }

  void add(bool adds, const Sum *columns, Sum *dx) const {
    const int64_t elements = columns_.images * columns_.channels * columns_.space.input.count();
    launch("sum of a convolution's columns", add_columns<Sum>,
           {blocks_for(elements), block_threads}, columns_, adds,
           reads(columns, rows_ * groups_ * columns_.columns), writes(dx, input_count()));
  }

  // y = w columns
  template <typename To> void multiply(const T *w, const T *columns, To *y) const {
    matmul_shape product = by_image_and_group(outputs_, columns_.count, rows_);
    product.a = weight_matrix(false);
    product.b = column_matrix();
    product.c = result_matrix();
    matmul(product, w, columns, y);
  }

  // columns = w' dy
  void multiply_transposed(const T *w, const T *dy, Sum *columns) const {
    matmul_shape product = by_image_and_group(rows_, columns_.count, outputs_);
    product.a = weight_matrix(true);
    product.b = result_matrix();
    product.c = column_matrix();
    matmul(product, w, dy, columns);
  }

  // dw = gathered columns', or added to it
  void multiply_columns(bool adds, const T *gathered, const T *columns, Sum *dw) const {
    matmul_shape product;
    product.m = outputs_;
    product.n = rows_;
    product.k = columns_.columns;
    product.batch[0] = groups_;
    product.a.row_stride = columns_.columns;
    product.a.batch_strides[0] = outputs_ * columns_.columns;
    product.b.row_stride = 1;
    product.b.column_stride = columns_.columns;
    product.b.batch_strides[0] = rows_ * columns_.columns;
    product.c.row_stride = rows_;
    product.c.batch_strides[0] = outputs_ * rows_;
    adds ? matmul_add(product, gathered, columns, dw) : matmul(product, gathered, columns, dw);
  }

private:
  int64_t input_count() const {
    return shape_.input.of[0] * columns_.channels * columns_.space.input.count();
  }
  int64_t result_count() const { return shape_.input.of[0] * columns_.outputs * columns_.points; }
  matmul_shape by_image_and_group(int64_t m, int64_t n, int64_t k) const {
    matmul_shape product;
    product.m = m;
    product.n = n;
    product.k = k;
    product.batch[0] = columns_.images;
    product.batch[1] = groups_;
    return product;
  }
  matrix_layout weight_matrix(bool transposed) const {
    matrix_layout matrix;
    matrix.row_stride = transposed ? 1 : rows_;
    matrix.column_stride = transposed ? rows_ : 1;
    matrix.batch_strides[1] = outputs_ * rows_;
    return matrix;
  }
  matrix_layout column_matrix() const {
    matrix_layout matrix;
    if (is_input(shape_)) { // images lie one after the other
      matrix.row_stride = columns_.points;
      matrix.batch_strides[0] = columns_.channels * columns_.points;
      matrix.batch_strides[1] = rows_ * columns_.points;
      return matrix;
    }
    matrix.row_stride = columns_.columns;
    matrix.batch_strides[0] = columns_.count;
    matrix.batch_strides[1] = rows_ * columns_.columns;
    return matrix;
  }
  matrix_layout result_matrix() const {
    matrix_layout matrix;
    matrix.offset = columns_.first_image * columns_.outputs * columns_.points + columns_.first;
    matrix.row_stride = columns_.points;
    matrix.batch_strides[0] = columns_.outputs * columns_.points;
    matrix.batch_strides[1] = outputs_ * columns_.points;
    return matrix;
  }

  const convolution_shape &shape_;
  const column_shape &columns_;
  int64_t groups_, outputs_, rows_;
};

template <typename T, typename To>
void compute_chunk(convolution_part part, const convolution_shape &shape,
                   const column_shape &columns, const T *first, const T *second, To *to,
                   char *scratch) {
  T *storage = reinterpret_cast<T *>(scratch);
  T *gathered = storage + shape.input.of[1] * columns.taps * columns.columns;
  const bool is_first = columns.first_image == 0 && columns.first == 0;
  if (part == convolution_part::result) {
    const chunk<T, To> work(shape, columns);
    if (!is_input(shape))
      work.make(first, storage);
    return work.multiply(second, is_input(shape) ? first : storage, to);
  }
  if constexpr (!is_narrow_v<To>) { // gradients are sums
    const chunk<T, To> work(shape, columns);
    if (part == convolution_part::weight_gradient) {
      work.make(first, storage);
      work.gather(second, gathered);
      return work.multiply_columns(!is_first, gathered, storage, to);
    }
    To *sums = is_input(shape) ? to : reinterpret_cast<To *>(scratch);
    work.multiply_transposed(second, first, sums);
    if (!is_input(shape))
      work.add(columns.first > 0, sums, to);
  }
}

template <typename T> void set_zero(T *tensor, int64_t count) {
  if (!only_planning() && count > 0)
    check_cuda(cudaMemsetAsync(tensor, 0, static_cast<size_t>(count) * sizeof(T), compute_stream()),
               "zeroing of a convolution's result");
}

template <typename T, typename To>
void compute_by_products(const convolution_key &key, const convolution_operands &operands) {
  const convolution_shape &shape = key.shape;
  const convolution_part part = key.computed();
  const int64_t scratch_bytes = key.scratch_bytes;
  column_shape columns(shape);
  // A column, and what belongs to it of dy.
  const int64_t column_bytes = (columns.channels * columns.taps + columns.outputs) *
                               static_cast<int64_t>(std::max(sizeof(T), sizeof(To)));
  const int64_t most = std::max<int64_t>(scratch_bytes / column_bytes, 1);
  const int64_t images = shape.input.of[0];
  int64_t points = columns.points;
  columns.images = std::clamp<int64_t>(most / points, 1, images);
  if (most < points)
    points = most >= column_multiple ? most / column_multiple * column_multiple : most;
  if (is_input(shape) && part != convolution_part::weight_gradient) {
    columns.images = images;
    points = columns.points;
  }
  const int64_t together = columns.images;
  for (columns.first_image = 0; columns.first_image < images; columns.first_image += together) {
    columns.images = std::min(together, images - columns.first_image);
    for (columns.first = 0; columns.first < columns.points; columns.first += points) {
      columns.count = std::min(points, columns.points - columns.first);
      columns.columns = columns.images * columns.count;
      compute_chunk(part, shape, columns, static_cast<const T *>(operands.first),
                    static_cast<const T *>(operands.second), static_cast<To *>(operands.computed),
                    operands.scratch);
    }
  }
}

template <typename T, typename To>
void compute_convolution(convolution_part part, const convolution_shape &shape, const T *first,
                         const T *second, To *to, int64_t scratch_bytes, char *scratch) {
  const int rank = space_rank(shape);
  const int64_t counts[] = {count_of(shape.input, rank), count_of(shape.weight, rank),
                            count_of(shape.result, rank)};
  if (counts[0] == 0 || counts[1] == 0 || counts[2] == 0)
    return set_zero(to, counts[part == convolution_part::result           ? 2
                               : part == convolution_part::input_gradient ? 0
                                                                          : 1]);
  const convolution_key key = {shape, static_cast<int64_t>(part), number_of<T>, number_of<To>,
                               scratch_bytes};
  const convolution_operands operands = {first, second, to, scratch};
  if (!queue_by_library(key, operands, compute_by_products<T, To>))
    compute_by_products<T, To>(key, operands);
}

template <typename T> __global__ void widen_elements(const T *from, int64_t count, float *to) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < count)
    to[index] = static_cast<float>(from[index]);
}

template <typename T> void widen_as(const void *from, int64_t count, float *to) {
  launch("operands of a convolution in f32", widen_elements<T>, {blocks_for(count), block_threads},
         reads(static_cast<const T *>(from), count), count, writes(to, count));
}

} // namespace

DEFINE_CONVOLUTIONS_OF_ALL_TYPES

void widen(product_number number, const void *from, int64_t count, float *to) {
  number == product_number::bf16 ? widen_as<bfloat16>(from, count, to)
                                 : widen_as<float16>(from, count, to);
}

} // namespace trainc
