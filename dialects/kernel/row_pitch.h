// SPDX-License-Identifier: Apache-2.0
//
// Addresses in a tensor whose rows lie further apart than before.
#pragma once

#include "dialects/kernel/kernel.h"

namespace trainc::kernel {

/// Rows of `length` elements, which followed one another, begin `pitch` elements apart.
struct RowPitch {
  int64_t length, pitch;

  /// An offset or a stride.
  int64_t of(int64_t elements) const { return elements / length * pitch + elements % length; }
  llvm::SmallVector<int64_t> of(llvm::ArrayRef<int64_t> strides) const {
    return llvm::map_to_vector(strides, [&](int64_t stride) { return of(stride); });
  }
  MatrixAttr of(MatrixAttr matrix) const;

  /// Whether an address tells row from column: each stride is of whole rows or within one, and what
  /// is within one stays there.
  bool isTaken(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
               int64_t offset) const;
  bool isTaken(MatrixAttr matrix, llvm::ArrayRef<int64_t> batch, int64_t rows,
               int64_t columns) const;
};

} // namespace trainc::kernel
