// SPDX-License-Identifier: Apache-2.0
//
// Another batch than the file's (--batch): where the samples of a batch lie in each tensor, and
// that nothing computes one sample from another.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <string>

namespace trainc::reader {

class BatchAxis {
public:
  /// The number of samples in the file's shapes, and in those of the program.
  BatchAxis(int64_t inFile, int64_t asked) : inFile(inFile), asked(asked) {}

  /// The samples of a model input are its first dimension.
  void add(mlir::Value input);

  /// Finds where the samples are in the operation's results; false where it mixes them, or where it
  /// is not known whether it does.
  bool follow(mlir::Operation *op);

  bool hasSamples(mlir::Value value) const { return strides.contains(value); }
  /// False of a tensor with samples that are not its first dimension, one element of it each.
  bool isBatch(mlir::Value value) const;

  /// The shapes that a Reshape and an Expand of the file give `x`, for as many samples as there are
  /// now. -1 and, with `zeroCopies`, 0 have ONNX's meaning for Reshape. Nullopt where an Expand
  /// makes several of each sample.
  llvm::SmallVector<int64_t> reshaped(mlir::Value x, llvm::ArrayRef<int64_t> shape,
                                      bool zeroCopies) const;
  std::optional<llvm::SmallVector<int64_t>> expanded(mlir::Value x,
                                                     llvm::ArrayRef<int64_t> shape) const;

  /// The dimension that `value` must be repeated along to lie beside `other`, whose samples are
  /// there: it is the same for each of them. Nullopt where it has them, or as many.
  std::optional<int64_t> repeated(mlir::Value value, mlir::Value other) const;

private:
  struct Place {
    int64_t dimension;
    int64_t elements; // of the dimension, in a row, that are of one sample
    bool operator==(const Place &) const = default;
  };
  std::optional<Place> locate(llvm::ArrayRef<int64_t> shape, int64_t stride) const;
  std::optional<Place> find(mlir::Value value) const;
  bool isSameForAll(mlir::Value value, int64_t stride) const;
  bool isSameForAll(mlir::Value value, const Place &place) const;
  void place(mlir::Value result, int64_t dimension, int64_t elements);
  bool follow(mlir::Operation *op, llvm::ArrayRef<std::optional<Place>> places);
  bool followParts(mlir::Operation *op);

  int64_t inFile, asked;
  // Elements from one sample to the next in row-major order, which no reshape changes. Tensors that
  // are the same for all samples have none.
  llvm::DenseMap<mlir::Value, int64_t> strides;
};

} // namespace trainc::reader
