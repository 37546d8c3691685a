// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/nn/builder.h"
#include "llvm/ADT/DenseMap.h"

namespace trainc {

/// Gradients of values, from the last operation to the first.
class BackwardPass {
public:
  explicit BackwardPass(nn::Builder builder) : b(builder) {}

  /// Adds to the gradient of a value.
  void add(mlir::Value value, mlir::Value gradient);
  /// Goes back through operations, which are in the order in which they run.
  void through(llvm::ArrayRef<mlir::Operation *> operations);
  /// Zeros where the value reaches nothing.
  mlir::Value of(mlir::Value value);

private:
  nn::Builder b;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

} // namespace trainc
