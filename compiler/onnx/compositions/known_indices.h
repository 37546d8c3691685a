// SPDX-License-Identifier: Apache-2.0
//
// Indexing operators whose indices are known when the model is compiled: one gather of rows.
#pragma once

#include "dialects/nn/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

namespace trainc::nn {

/// `rows`, which index the first dimension of `table`, as a gather; the result has `shape`.
inline mlir::Value gatherRows(OnnxNode &node, mlir::Value table, llvm::ArrayRef<int64_t> rows,
                              llvm::ArrayRef<int64_t> shape) {
  auto i64 = mlir::IntegerType::get(node.builder().op().getContext(), 64);
  auto type = mlir::RankedTensorType::get(static_cast<int64_t>(rows.size()), i64);
  mlir::Value indices = node.literal(Tensor::ofIntegers(type, rows));
  return node.builder().reshape(node.builder().create<GatherOp>(table, indices), shape);
}

/// The row that an index tuple names in a tensor of `shape` whose first dimensions, as many as the
/// tuple has entries, are joined; nullopt where an entry is out of range.
inline std::optional<int64_t> rowOf(llvm::ArrayRef<int64_t> tuple, llvm::ArrayRef<int64_t> shape) {
  int64_t row = 0;
  for (auto [index, size] : llvm::zip(tuple, shape)) {
    if (index < -size || index >= size)
      return std::nullopt;
    row = row * size + (index < 0 ? index + size : index);
  }
  return row;
}

} // namespace trainc::nn
