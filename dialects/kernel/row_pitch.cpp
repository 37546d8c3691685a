// SPDX-License-Identifier: Apache-2.0
#include "dialects/kernel/row_pitch.h"

using namespace mlir;

namespace trainc::kernel {

MatrixAttr RowPitch::of(MatrixAttr matrix) const {
  return MatrixAttr::get(matrix.getContext(), of(matrix.getOffset()), of(matrix.getBatchStrides()),
                         of(matrix.getRowStride()), of(matrix.getColumnStride()));
}

bool RowPitch::isTaken(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset) const {
  if (offset < 0)
    return false;
  int64_t last = offset % length;
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    if (stride < 0)
      return false;
    if (size > 1 && stride % length != 0)
      last += (size - 1) * stride;
  }
  return last < length;
}

bool RowPitch::isTaken(MatrixAttr matrix, ArrayRef<int64_t> batch, int64_t rows,
                       int64_t columns) const {
  SmallVector<int64_t> sizes(batch), strides(matrix.getBatchStrides());
  sizes.append({rows, columns});
  strides.append({matrix.getRowStride(), matrix.getColumnStride()});
  return isTaken(sizes, strides, matrix.getOffset());
}

} // namespace trainc::kernel
