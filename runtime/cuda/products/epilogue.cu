// SPDX-License-Identifier: Apache-2.0
//
// A thread for each element; sums by blocks for each 32 columns, whose strips of lines are added in
// order.
#include "runtime/cuda/products/epilogue.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/kernels/math.h"
#include "runtime/kernels/narrow_float.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr unsigned block_threads = 256;
constexpr int64_t most_blocks = 4096;
constexpr int columns_of_block = 32, strips = block_threads / columns_of_block;
constexpr float root_of_two_over_pi = 0.7978845608028654f, cubic = 0.044715f; // of GELU's tanh form

__device__ float gelu(float x) {
  return 0.5f * x * (1 + tanh(root_of_two_over_pi * (x + cubic * x * x * x)));
}
__device__ float gelu_derivative(float x) {
  const float t = tanh(root_of_two_over_pi * (x + cubic * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root_of_two_over_pi * (1 + 3 * cubic * x * x);
}

__device__ int64_t first_element() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ int64_t element_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// c += bias, for lines of `length` elements.
template <typename T> __global__ void add_bias(const T *bias, int64_t length, int64_t count, T *c) {
  for (int64_t i = first_element(); i < count; i += element_step())
    c[i] = static_cast<T>(static_cast<float>(c[i]) + static_cast<float>(bias[i % length]));
}

// c = gelu(c), and c as it was, where there is a place for it.
template <typename T> __global__ void apply_gelu(int64_t count, T *c, T *linear) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const T x = c[i];
    if (linear)
      linear[i] = x;
    c[i] = static_cast<T>(gelu(static_cast<float>(x)));
  }
}

template <typename T> __global__ void multiply_by_derivative(const T *linear, int64_t count, T *c) {
  for (int64_t i = first_element(); i < count; i += element_step())
    c[i] =
        static_cast<T>(static_cast<float>(c[i]) * gelu_derivative(static_cast<float>(linear[i])));
}

// sums[j] = the sum over i of x[i * line_stride + j * stride], of each part of the lines, which is
// a block's along y.
template <typename T>
__device__ void sum_lines(const T *x, int64_t lines, int64_t lines_of_part, int64_t line_stride,
                          int64_t columns, int64_t stride, float *sums,
                          float (&of_strip)[block_threads]) {
  const int64_t column =
      static_cast<int64_t>(blockIdx.x) * columns_of_block + threadIdx.x % columns_of_block;
  float sum = 0;
  const int64_t first = blockIdx.y * lines_of_part;
  const int64_t end = minimum<int64_t>(first + lines_of_part, lines);
  if (column < columns)
    for (int64_t i = first + threadIdx.x / columns_of_block; i < end; i += strips)
      sum += static_cast<float>(x[i * line_stride + column * stride]);
  of_strip[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= columns_of_block || column >= columns)
    return;
  for (int strip = 1; strip < strips; ++strip)
    sum += of_strip[strip * columns_of_block + threadIdx.x];
  sums[blockIdx.y * columns + column] = sum;
}
#define ADD_LINES(name, T)                                                                         \
  __global__ void name(const T *x, int64_t lines, int64_t lines_of_part, int64_t line_stride,      \
                       int64_t columns, int64_t stride, float *sums) {                             \
    __shared__ float of_strip[block_threads];                                                      \
    sum_lines(x, lines, lines_of_part, line_stride, columns, stride, sums, of_strip);              \
  }                                                                                                \
  auto line_sum_of(const T *) { return name; }
ADD_LINES(add_lines_f32, float)
ADD_LINES(add_lines_bf16, bfloat16)
ADD_LINES(add_lines_f16, float16)
#undef ADD_LINES

launch_shape elementwise(int64_t count) {
  const int64_t blocks = (count + block_threads - 1) / block_threads;
  return {static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, most_blocks)), block_threads};
}

// Sums of parts of the lines go to `parts` first, which has room for product_workspace_bytes.
template <typename T>
void queue_sum(const T *x, int64_t lines, int64_t line_stride, int64_t columns, int64_t stride,
               float *sums, float *parts) {
  constexpr int64_t least_lines = 128, most_parts = 64; // of a part; of a sum
  const int64_t room = product_workspace_bytes / static_cast<int64_t>(sizeof(float)) / columns;
  const int64_t wanted = std::min({lines / least_lines, most_parts, room});
  const int64_t lines_of_part = wanted < 2 ? lines : (lines + wanted - 1) / wanted;
  const int64_t count = (lines + lines_of_part - 1) / lines_of_part;
  const int64_t extent = (lines - 1) * line_stride + (columns - 1) * stride + 1;
  const int64_t blocks = (columns + columns_of_block - 1) / columns_of_block;
  launch("a sum beside a matrix product", line_sum_of(x),
         {.blocks = static_cast<unsigned>(blocks),
          .threads = block_threads,
          .blocks_y = static_cast<unsigned>(count)},
         reads(x, extent), lines, lines_of_part, line_stride, columns, stride,
         writes(count == 1 ? sums : parts, count * columns));
  if (count > 1)
    queue_sum(static_cast<const float *>(parts), count, columns, columns, 1, sums, nullptr);
}

// Of a product of numbers of T, whose result has those, too. Sums are of f32.
template <typename T>
void queue_epilogue_of(const product_key &key, const product_operands &operands, char *workspace) {
  const matmul_shape &shape = key.shape;
  const int64_t count = shape.m * shape.n;
  const int64_t length = shape.c.column_stride == 1 ? shape.n : shape.m; // of a line of c
  T *c = static_cast<T *>(operands.c) + shape.c.offset;
  auto *bias = static_cast<const T *>(operands.vector);
  auto *linear = static_cast<T *>(const_cast<void *>(operands.linear));
  auto *sums = static_cast<float *>(const_cast<void *>(operands.vector));
  auto *parts = reinterpret_cast<float *>(workspace);
  const char *name = "what follows a matrix product";
  switch (key.epilogue) {
  case product_epilogue::none:
    return;
  case product_epilogue::bias:
  case product_epilogue::gelu:
    if (bias)
      launch(name, add_bias<T>, elementwise(count), reads(bias, length), length, count,
             writes(c, count));
    if (key.epilogue == product_epilogue::gelu)
      launch(name, apply_gelu<T>, elementwise(count), count, writes(c, count),
             writes(linear, linear ? count : 0));
    return;
  case product_epilogue::gelu_gradient:
    launch(name, multiply_by_derivative<T>, elementwise(count),
           reads(static_cast<const T *>(linear), count), count, writes(c, count));
    if (sums)
      queue_sum(static_cast<const T *>(c), count / length, length, length, 1, sums, parts);
    return;
  case product_epilogue::sum_of_a:
    return queue_sum(static_cast<const T *>(operands.a) + shape.a.offset, shape.k,
                     shape.a.column_stride, shape.m, shape.a.row_stride, sums, parts);
  case product_epilogue::sum_of_b:
    return queue_sum(static_cast<const T *>(operands.b) + shape.b.offset, shape.k,
                     shape.b.row_stride, shape.n, shape.b.column_stride, sums, parts);
  }
}

template <typename T> cudaError_t find_kernels_of() {
  cudaFuncAttributes attributes;
  cudaError_t status = cudaFuncGetAttributes(&attributes, add_bias<T>);
  if (status == cudaSuccess)
    status = cudaFuncGetAttributes(&attributes, apply_gelu<T>);
  if (status == cudaSuccess)
    status = cudaFuncGetAttributes(&attributes, multiply_by_derivative<T>);
  return status == cudaSuccess
             ? cudaFuncGetAttributes(&attributes, line_sum_of(static_cast<const T *>(nullptr)))
             : status;
}

} // namespace

void queue_epilogue(const product_key &key, const product_operands &operands, char *workspace) {
  switch (key.operands) {
  case product_number::f64:
    return; // has none
  case product_number::f32:
    return queue_epilogue_of<float>(key, operands, workspace);
  case product_number::bf16:
    return queue_epilogue_of<bfloat16>(key, operands, workspace);
  case product_number::f16:
    return queue_epilogue_of<float16>(key, operands, workspace);
  }
}

cudaError_t find_epilogue_kernels() {
  cudaError_t status = find_kernels_of<float>();
  if (status == cudaSuccess)
    status = find_kernels_of<bfloat16>();
  return status == cudaSuccess ? find_kernels_of<float16>() : status;
}

} // namespace trainc
