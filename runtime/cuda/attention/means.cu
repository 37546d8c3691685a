// SPDX-License-Identifier: Apache-2.0
//
// What the gradient of attention needs of each query: the mean of its slopes by its weights, which
// is the product of the result and its gradient, and what makes its weights add up to 1. A warp has
// a row.
#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/reduce.h"

namespace trainc {
namespace {

constexpr int block_threads = 256, block_rows = block_threads / 32;

// The sum of a row's weights as its log_sum gives them.
template <typename T>
__device__ attention_sum<T> sum_of_weights(const attention_shape &shape,
                                           const attention_tensors<T> &in, int64_t head,
                                           int64_t query, attention_sum<T> log_sum) {
  using S = attention_sum<T>;
  const attention_sizes &sizes = shape.sizes;
  const auto q = matrix_of(in.q, shape.batch, shape.q, head, sizes.queries, sizes.size);
  const auto k = matrix_of(in.k, shape.batch, shape.k, head, sizes.keys, sizes.size);
  const head_masks<S> masks = masks_of(shape, in, head);
  const S scale = static_cast<S>(shape.scale);
  S sum = 0;
  for (int64_t key = threadIdx.x % 32; key < end_of_keys(sizes, query); key += 32) {
    S score = 0;
    for (int64_t d = 0; d < sizes.size; ++d)
      score = fma(static_cast<S>(q.at(query, d)), static_cast<S>(k.at(key, d)), score);
    sum += exp(masks.add(query, key, score * scale) - log_sum);
  }
  return sum_of_warp(sum);
}

template <typename T>
__global__ void means(attention_shape shape, matrix_layout dlayout, int64_t rows, const T *result,
                      const T *dresult, const T *q, const T *k, const attention_sum<T> *first_mask,
                      const attention_sum<T> *second_mask, const attention_sum<T> *log_sums,
                      row_numbers<attention_sum<T>> *to) {
  using S = attention_sum<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * block_rows + threadIdx.x / 32;
  if (row >= rows)
    return;
  const attention_sizes &sizes = shape.sizes;
  const int64_t head = row / sizes.queries, query = row % sizes.queries;
  const T *y =
      result + offset_of_head(shape.batch, shape.result, head) + query * shape.result.row_stride;
  const T *dy = dresult + offset_of_head(shape.batch, dlayout, head) + query * dlayout.row_stride;
  S sum = 0;
  for (int64_t d = threadIdx.x % 32; d < sizes.value_size; d += 32)
    sum = fma(static_cast<S>(y[d * shape.result.column_stride]),
              static_cast<S>(dy[d * dlayout.column_stride]), sum);
  sum = sum_of_warp(sum);
  const S log_sum = log_sums[row];
  S inverse = 1;
  if (is_rounded_off(log_sum))
    inverse = 1 / sum_of_weights<T>(
                      shape, {q, k, nullptr, {first_mask, second_mask}, nullptr, nullptr, nullptr},
                      head, query, log_sum);
  if (threadIdx.x % 32 == 0)
    to[row] = {sum, inverse};
}

} // namespace

template <typename T> void means_of_slopes(const attention_gradient_call<T> &call) {
  const attention_gradient_extents<T> all(call);
  const int64_t rows = all.of.heads() * call.shape.sizes.queries;
  launch("means of attention's slopes", means<T>,
         {blocks_of(parts_of(rows, block_rows)), block_threads}, call.shape, call.layouts.dresult,
         rows, reads(static_cast<const T *>(call.tensors.result), all.of.result().elements),
         all.dresult(), all.of.q(), all.of.k(), all.of.mask(0), all.of.mask(1), all.log_sum(),
         writes(all.numbers(), rows));
}

template void means_of_slopes(const attention_gradient_call<float> &);
template void means_of_slopes(const attention_gradient_call<double> &);
template void means_of_slopes(const attention_gradient_call<bfloat16> &);
template void means_of_slopes(const attention_gradient_call<float16> &);

} // namespace trainc
