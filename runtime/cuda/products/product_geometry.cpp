// SPDX-License-Identifier: Apache-2.0
//
// Finding the fewest calls of cuBLASLt that compute a batched product.
#include "runtime/cuda/products/product_geometry.h"

#include "runtime/failure.h"
#include "runtime/kernels/matrix_storage.h"

#include <algorithm>

namespace trainc {
namespace {

column_major_matrix column_major(const matrix_layout &matrix, int64_t rows, int64_t columns,
                                 bool swapped) {
  const matrix_storage storage = storage_of(matrix, rows, columns);
  column_major_matrix result;
  // Read column by column, a row-major matrix is its own transpose.
  result.transposed = storage.row_major != swapped;
  result.rows = storage.row_major ? columns : rows;
  result.columns = storage.row_major ? rows : columns;
  result.leading = storage.leading;
  return result;
}

// Outer dimensions whose strides continue those of the next one become one with it.
std::vector<batch_loop> merged_batch(const matmul_shape &shape) {
  std::vector<batch_loop> loops;
  for (int d = 0; d < batch_rank(shape); ++d)
    if (shape.batch[d] > 1)
      loops.push_back({shape.batch[d], shape.a.batch_strides[d], shape.b.batch_strides[d],
                       shape.c.batch_strides[d]});
  // The order of independent products is free.
  std::stable_sort(loops.begin(), loops.end(), [](const batch_loop &x, const batch_loop &y) {
    return x.c_stride > y.c_stride;
  });
  for (size_t d = 1; d < loops.size();) {
    const batch_loop &outer = loops[d - 1], &inner = loops[d];
    if (outer.a_stride == inner.size * inner.a_stride &&
        outer.b_stride == inner.size * inner.b_stride &&
        outer.c_stride == inner.size * inner.c_stride) {
      loops[d].size *= outer.size;
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(d) - 1);
    } else {
      ++d;
    }
  }
  return loops;
}

int64_t extent(const matmul_shape &shape, const matrix_layout &matrix, int64_t rows,
               int64_t columns) {
  int64_t last = (rows - 1) * matrix.row_stride + (columns - 1) * matrix.column_stride;
  for (int d = 0; d < batch_rank(shape); ++d)
    last += (shape.batch[d] - 1) * matrix.batch_strides[d];
  return last + 1;
}

int64_t lowest_bit(int64_t value) { return value & -value; }

} // namespace

product_geometry geometry_of(const matmul_shape &shape) {
  product_geometry result;
  result.swapped = storage_of(shape.c, shape.m, shape.n).row_major;
  const auto a = column_major(shape.a, shape.m, shape.k, result.swapped);
  const auto b = column_major(shape.b, shape.k, shape.n, result.swapped);
  result.left = result.swapped ? b : a;
  result.right = result.swapped ? a : b;
  result.result = column_major(shape.c, shape.m, shape.n, result.swapped);
  result.k = shape.k;
  result.a_extent = extent(shape, shape.a, shape.m, shape.k);
  result.b_extent = extent(shape, shape.b, shape.k, shape.n);
  result.c_extent = extent(shape, shape.c, shape.m, shape.n);

  result.loops = merged_batch(shape);
  if (result.loops.empty())
    return result;
  auto longest =
      std::max_element(result.loops.begin(), result.loops.end(),
                       [](const batch_loop &x, const batch_loop &y) { return x.size < y.size; });
  result.batch = longest->size;
  result.left.batch_stride = result.swapped ? longest->b_stride : longest->a_stride;
  result.right.batch_stride = result.swapped ? longest->a_stride : longest->b_stride;
  result.result.batch_stride = longest->c_stride;
  result.loops.erase(longest);
  return result;
}

std::string geometry_text(const product_geometry &geometry) {
  auto matrix = [](const char *name, const column_major_matrix &matrix) {
    return format_text(" %s %c %ld %ld", name, matrix.transposed ? 'T' : 'N',
                       static_cast<long>(matrix.leading), static_cast<long>(matrix.batch_stride));
  };
  return format_text("%ldx%ldx%ld batch %ld", static_cast<long>(geometry.result.rows),
                     static_cast<long>(geometry.result.columns), static_cast<long>(geometry.k),
                     static_cast<long>(geometry.batch)) +
         matrix("left", geometry.left) + matrix("right", geometry.right) +
         matrix("result", geometry.result);
}

int64_t operand_alignment(const matmul_shape &shape, const matrix_layout &matrix,
                          const void *address, int64_t element_bytes) {
  int64_t bits = 64 | reinterpret_cast<intptr_t>(address) | matrix.offset * element_bytes;
  for (int d = 0; d < batch_rank(shape); ++d)
    if (shape.batch[d] > 1)
      bits |= matrix.batch_strides[d] * element_bytes;
  return lowest_bit(bits);
}

} // namespace trainc
