// SPDX-License-Identifier: Apache-2.0
//
// The parameters of each run as an optimizer sees them, and where their states lie.
#pragma once

#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/IR/BuiltinOps.h"

namespace trainc {

/// A run's parameters, and of each of the optimizer's states the elements of the run's flat tensor:
/// 0 where no parameter of it has any.
struct UpdatedRun {
  std::vector<train::UpdatedParameter> parameters;
  llvm::SmallVector<int64_t> stateElements;
  llvm::SmallVector<mlir::Type> stateTypes; // of elements
};

/// `element`: of the parameters.
UpdatedRun describeRun(mlir::ModuleOp module, const train::Optimizer &optimizer, train::Run run,
                       int64_t group, mlir::Type element);

/// Writes down what the states of `runs`, in the order of the layout, are where they are not like
/// their parameters.
void writeStateLayout(mlir::ModuleOp module, const train::Optimizer &optimizer,
                      llvm::ArrayRef<UpdatedRun> runs);

} // namespace trainc
