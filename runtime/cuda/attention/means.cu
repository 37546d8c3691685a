// SPDX-License-Identifier: Apache-2.0
//
// The means of the slopes of each query by its weights, which the gradient of attention subtracts:
// the products of the result and its gradient. A warp has a row.
#include "runtime/cuda/attention/extents.h"
#include "runtime/cuda/attention/places.h"
#include "runtime/cuda/kernels/reduce.h"

namespace trainc {
namespace {

constexpr int block_threads = 256, block_rows = block_threads / 32;

template <typename T>
__global__ void means(attention_sizes sizes, attention_batch batch, matrix_layout layout,
                      matrix_layout dlayout, int64_t rows, const T *result, const T *dresult,
                      attention_sum<T> *mean) {
  using S = attention_sum<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * block_rows + threadIdx.x / 32;
  if (row >= rows)
    return;
  const int64_t head = row / sizes.queries, query = row % sizes.queries;
  const T *y = result + batch_offset(batch.of, layout, head) + query * layout.row_stride;
  const T *dy = dresult + batch_offset(batch.of, dlayout, head) + query * dlayout.row_stride;
  S sum = 0;
  for (int64_t d = threadIdx.x % 32; d < sizes.value_size; d += 32)
    sum = fma(static_cast<S>(y[d * layout.column_stride]),
              static_cast<S>(dy[d * dlayout.column_stride]), sum);
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0)
    mean[row] = sum;
}

} // namespace

template <typename T> void means_of_slopes(const attention_gradient_call<T> &call) {
  const attention_gradient_extents<T> all(call);
  const int64_t rows = all.of.heads() * call.shape.sizes.queries;
  launch("means of attention's slopes", means<T>,
         {blocks_of(parts_of(rows, block_rows)), block_threads}, call.shape.sizes, call.shape.batch,
         call.shape.result, call.layouts.dresult, rows,
         reads(static_cast<const T *>(call.tensors.result), all.of.result().elements),
         all.dresult(), writes(all.means(), rows));
}

template void means_of_slopes(const attention_gradient_call<float> &);
template void means_of_slopes(const attention_gradient_call<double> &);
template void means_of_slopes(const attention_gradient_call<bfloat16> &);

} // namespace trainc
