// SPDX-License-Identifier: Apache-2.0
//
// What LibraryOpInterface::lowerToStep works with: steps read tensors in memory, so it
// asks where an operand really lies.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/nn/views.h"

namespace trainc::nn {

/// A batch of matrices inside a tensor.
struct StridedMatrices {
  mlir::Value tensor;
  kernel::MatrixAttr layout;
};

/// A batched product `result = a b` on matrices in memory: a is m x k, b k x n.
struct StridedProduct {
  int64_t m, n, k;
  llvm::SmallVector<int64_t> batch;
  StridedMatrices a, b;
  StridedMatrices result; // the tensor is the result asked about, or a view that alone reads it
};

/// A tensor as matrices that its last two dimensions are, one for each of a batch.
struct BatchedMatrices {
  enum Use {
    read,      // as a library takes its strides
    broadcast, // with any strides: 0 along dimensions of size 1
    written    // as `read`; the tensor is a view that alone reads the value, if there is one
  };
  mlir::Value value;
  int64_t rows, columns; // of the batch's matrices
  Use use = read;
  int64_t sharing = 1;                // as many neighbours of the batch have one matrix
  llvm::ArrayRef<int64_t> shape = {}; // of `broadcast`: to what
};

/// Such tensors in memory, with one batch, which may have more dimensions than asked for.
struct StridedBatch {
  llvm::SmallVector<int64_t> batch;
  llvm::SmallVector<StridedMatrices> tensors;
};

/// Names the results of an operation's step: each has the node's name and its role, where it has
/// one.
void nameResultsByRole(mlir::Operation *step, mlir::Operation *op,
                       llvm::ArrayRef<llvm::StringRef> roles);

/// Builds steps in front of the operation that is lowered.
class StepBuilder {
public:
  StepBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : builder(builder), location(location) {}
  virtual ~StepBuilder() = default;
  StepBuilder(const StepBuilder &) = delete;
  StepBuilder &operator=(const StepBuilder &) = delete;

  template <typename Op, typename... Args> Op create(Args &&...args) {
    return builder.create<Op>(location, std::forward<Args>(args)...);
  }

  /// The operand as a contiguous tensor in memory.
  static mlir::Value contiguous(mlir::Value operand) { return withoutReshapes(operand); }
  /// A contiguous tensor with the operand's elements that the step may overwrite: the operand
  /// itself where it dies here, else a copy.
  mlir::Value overwritable(mlir::Value operand);
  /// How a product of the operands, whose last two dimensions are its matrices, can be done on
  /// what lies in memory: views above the operands and below the result are followed as far as
  /// a library takes the strides.
  virtual StridedProduct product(mlir::Value a, bool transposeA, mlir::Value b, bool transposeB,
                                 mlir::Value result) = 0;
  /// How tensors whose dimensions in front of the matrices are `batch` lie in memory; of neighbours
  /// that share a matrix the number is the last size.
  virtual StridedBatch matrices(llvm::ArrayRef<int64_t> batch,
                                llvm::ArrayRef<BatchedMatrices> tensors) = 0;

private:
  mlir::OpBuilder &builder;
  mlir::Location location;
};

} // namespace trainc::nn
