// SPDX-License-Identifier: Apache-2.0
//
// The layouts of matmul.h in the terms of libraries: leading dimensions, numbered
// batches.
#pragma once

#include "runtime/kernels/bounds.h"
#include "runtime/kernels/inline.h"
#include "runtime/kernels/matmul.h"

namespace trainc {

// A dimension of size one has no stride that matters; the leading dimension must
// still be at least the other size.
struct matrix_storage {
  bool row_major;
  int64_t leading;
};

inline matrix_storage storage_of(const matrix_layout &matrix, int64_t rows, int64_t columns) {
  if (matrix.column_stride == 1 || columns == 1)
    return {true, larger_of(rows == 1 ? columns : matrix.row_stride, columns)};
  return {false, larger_of(columns == 1 ? rows : matrix.column_stride, rows)};
}

// The sizes of a batch, 0 after the last: how many they are, how many batches that makes, and
// where one of these begins in a tensor.
using batch_sizes = int64_t[max_batch_rank];

TRAINC_INLINE int batch_rank(const batch_sizes &sizes) {
  int rank = 0;
  while (rank < max_batch_rank && sizes[rank] != 0)
    ++rank;
  return rank;
}

TRAINC_INLINE int64_t batch_count(const batch_sizes &sizes) {
  int64_t count = 1;
  for (int d = 0; d < batch_rank(sizes); ++d)
    count *= sizes[d];
  return count;
}

TRAINC_INLINE int64_t batch_offset(const batch_sizes &sizes, const matrix_layout &matrix,
                                   int64_t batch) {
  int64_t offset = matrix.offset;
  for (int d = batch_rank(sizes) - 1; d >= 0; --d) {
    offset += batch % sizes[d] * matrix.batch_strides[d];
    batch /= sizes[d];
  }
  return offset;
}

inline int batch_rank(const matmul_shape &shape) { return batch_rank(shape.batch); }
inline int64_t batch_count(const matmul_shape &shape) { return batch_count(shape.batch); }
inline int64_t batch_offset(const matmul_shape &shape, const matrix_layout &matrix, int64_t batch) {
  return batch_offset(shape.batch, matrix, batch);
}

} // namespace trainc
