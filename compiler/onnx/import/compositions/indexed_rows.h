// SPDX-License-Identifier: Apache-2.0
//
// What the indexing operators share: index tuples as rows of a table whose indexed dimensions are
// joined, and updates of such rows. Indices are known when the model is compiled or computed when
// the step runs, where each is checked against its own dimension.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// Rows, in range: known when the model is compiled, or a tensor, i64 of one dimension.
struct IndexedRows {
  llvm::SmallVector<int64_t> shape; // of the indices, or of the tuples among them
  std::optional<std::vector<int64_t>> known;
  mlir::Value computed; // null where they are known

  int64_t count() const;
  /// As a tensor in either case.
  mlir::Value tensor(OnnxNode &node) const;
};

/// The elements of a tensor of `shape`, flattened, that input 1 of the node names: each by its
/// place in the indices, but along `axis` by the index.
mlir::FailureOr<IndexedRows> elementsAlongAxis(OnnxNode &node, llvm::ArrayRef<int64_t> shape,
                                               int64_t axis);

/// The ones of `count` elements that input 1 of the node names, each by its number.
mlir::FailureOr<IndexedRows> elementsByNumber(OnnxNode &node, int64_t count);

/// The rows of a tensor of `shape` that the tuples in the last dimension of input 1 name; its first
/// `batch` dimensions are those of the indices and stand before each tuple. `depth` receives how
/// many dimensions are joined.
mlir::FailureOr<IndexedRows> rowsOfTuples(OnnxNode &node, llvm::ArrayRef<int64_t> shape,
                                          int64_t batch, int64_t &depth);

/// The table with `updates`, one for each of `rows`, in the place of rows, of several of one row
/// the last; or added to them, in order; or combined with them as `reduction`, which is ONNX's,
/// says (scatter_reduction.h).
OnnxResults scatterRows(OnnxNode &node, mlir::Value table, const IndexedRows &rows,
                        mlir::Value updates, llvm::StringRef reduction,
                        llvm::ArrayRef<int64_t> resultShape);

} // namespace trainc::nn
