// SPDX-License-Identifier: Apache-2.0
//
// The reference interpreter of nn: the meaning of every operation, executed. Constants are folded
// by it, models are run by it (trainc-run), and tests compare compiled programs with it.
//
// Pointwise operations execute the scalar code that is emitted (scalar_program.h has the rule of
// rounding), structured ones their `interpret`, composites their decomposition. Sums and products
// of matrices are accumulated in double and rounded once.
#pragma once

#include "dialects/nn/scalar_program.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

namespace trainc::nn {

using TensorValues = llvm::DenseMap<mlir::Value, Tensor>;

class Interpreter {
public:
  /// Results with more elements than `largest`, and operations that take more multiplications, are
  /// errors: a wrong size in a model must not fill the memory.
  explicit Interpreter(int64_t largest) : largest(largest) {}

  /// True where `op` on these operands stays within the limit.
  bool isWithinLimit(mlir::Operation *op, llvm::ArrayRef<Tensor> operands) const;

  /// The values of its results. Fails with an error of the operation.
  mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateResults(mlir::Operation *op,
                                                             llvm::ArrayRef<Tensor> operands);
  /// The result of an operation that has one.
  mlir::FailureOr<Tensor> evaluate(mlir::Operation *op, llvm::ArrayRef<Tensor> operands);

  /// Evaluates the operations of a block up to its terminator. `values` holds what the block needs
  /// from outside and receives its results; one that nothing needs any more goes, unless `keep`
  /// wants it.
  mlir::LogicalResult run(mlir::Block &block, TensorValues &values,
                          llvm::function_ref<bool(mlir::Value)> keep);

  /// True where the last evaluation failed because it would have been too large.
  bool stoppedAtLimit() const { return tooLarge; }

  /// True where `op` is pointwise and every machine gives the same bits for it.
  bool isExact(mlir::Operation *op);

private:
  const ScalarProgram &program(mlir::Operation *op);
  mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateParts(mlir::Operation *op,
                                                           llvm::ArrayRef<Tensor> operands);

  int64_t largest;
  bool tooLarge = false;
  // by name and element types of operands and result
  std::map<std::vector<const void *>, ScalarProgram> programs;
};

/// Largest tensor that is computed while compiling, in elements; a mask of 4096 x 4096 fits.
constexpr int64_t kLargestFolded = int64_t(1) << 24;

} // namespace trainc::nn
