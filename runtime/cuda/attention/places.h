// SPDX-License-Identifier: Apache-2.0
//
// For the kernels of attention: where heads are in memory, and what a query sees.
#pragma once

#include "runtime/kernels/attention_gradient.h"
#include "runtime/kernels/math.h"
#include "runtime/kernels/matrix_storage.h"

#include <cuda_runtime.h>

namespace trainc {

// Where a head's matrix begins. Heads are fewer than blocks, so that 32 bits divide their numbers.
__device__ inline int64_t offset_of_head(const attention_batch &batch, const matrix_layout &layout,
                                         int64_t head) {
  int64_t offset = layout.offset;
  auto rest = static_cast<unsigned>(head);
#pragma unroll 1
  for (int d = batch_rank(batch.of) - 1; d >= 0; --d) {
    const auto size = static_cast<unsigned>(batch.of[d]);
    offset += rest % size * layout.batch_strides[d];
    rest /= size;
  }
  return offset;
}

// The matrix of one head.
template <typename T> struct head_matrix {
  T *data;
  int64_t row_stride, column_stride;
  int64_t rows, columns;

  __device__ T &at(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

template <typename T>
__device__ inline head_matrix<T> matrix_of(T *tensor, const attention_batch &batch,
                                           const matrix_layout &layout, int64_t head, int64_t rows,
                                           int64_t columns) {
  return {tensor + offset_of_head(batch, layout, head), layout.row_stride, layout.column_stride,
          rows, columns};
}

// The score of a key that a query sees, as masks leave it. -infinity hides a key of any score.
template <typename S> struct head_masks {
  int64_t count;
  const S *data[max_masks];
  int64_t row_stride[max_masks], column_stride[max_masks];

  __device__ S add(int64_t query, int64_t key, S score) const {
#pragma unroll
    for (int i = 0; i < max_masks; ++i) {
      if (i < count) {
        const S mask = data[i][query * row_stride[i] + key * column_stride[i]];
        score = mask == hidden_score<S> ? mask : score + mask;
      }
    }
    return score;
  }
};

template <typename T>
__device__ inline head_masks<attention_sum<T>>
masks_of(const attention_shape &shape, const attention_tensors<T> &tensors, int64_t head) {
  head_masks<attention_sum<T>> masks = {shape.sizes.masks, {}, {}, {}};
#pragma unroll
  for (int i = 0; i < max_masks; ++i)
    if (i < shape.sizes.masks) {
      masks.data[i] = tensors.masks[i] + offset_of_head(shape.batch, shape.masks.of[i], head);
      masks.row_stride[i] = shape.masks.of[i].row_stride;
      masks.column_stride[i] = shape.masks.of[i].column_stride;
    }
  return masks;
}

// What the weights of one head are multiplied by.
template <typename S> struct head_dropout {
  const attention_shape &shape; // a parameter of the kernel, which takes no registers
  const int64_t *key;
  int64_t head;

  __device__ S factor(int64_t query, int64_t key_of_row) const {
    const attention_dropout &dropout = shape.dropout;
    if (dropout.dropped == 0)
      return 1;
    const int64_t element = (head * shape.sizes.queries + query) * shape.sizes.keys + key_of_row;
    const bool drops = random_bits<dropout_bits>(*key, dropout.stream, element) < dropout.dropped;
    return drops ? S(0) : static_cast<S>(dropout.kept);
  }
};

__device__ inline bool sees(const attention_sizes &sizes, int64_t query, int64_t key) {
  return (query < sizes.queries) & (key < sizes.keys) & (key <= query + sizes.reach);
}

// One after the last key that some query up to `query` sees.
__device__ inline int64_t end_of_keys(const attention_sizes &sizes, int64_t query) {
  const int64_t last = query < sizes.queries ? query : sizes.queries - 1;
  const int64_t end = last + sizes.reach + 1;
  return end < 0 ? 0 : end < sizes.keys ? end : sizes.keys;
}

// The first query that sees a key from `key` on.
__device__ inline int64_t first_query(const attention_sizes &sizes, int64_t key) {
  return key > sizes.reach ? key - sizes.reach : 0;
}

// A sum, as a product of T reads it.
template <typename T> __device__ inline attention_sum<T> as_read(attention_sum<T> value) {
  if constexpr (is_narrow_v<T>)
    return T::nearest(value);
  else
    return value;
}

// What is left of a row's softmax. Where no key has a weight, the result is 0 or NaN.
template <typename S> struct row_end {
  S log_sum, divisor;

  __device__ row_end(S largest, S sum, bool masked_to_zero) {
    constexpr S infinite = std::numeric_limits<S>::infinity();
    const bool sees_none = sum == S(0);
    log_sum = !sees_none       ? largest + log(sum)
              : masked_to_zero ? infinite // then a key's weight is 0
                               : std::numeric_limits<S>::quiet_NaN();
    divisor = sees_none & masked_to_zero ? S(1) : sum;
  }
};

} // namespace trainc
