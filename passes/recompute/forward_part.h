// SPDX-License-Identifier: Apache-2.0
//
// The forward part of an entry function that computes gradients, as plain data for
// planning/recompute_cut.h, and its operations once more in front of those of the backward part.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/planning/recompute_cut.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"

namespace trainc {

/// Marks an operation that is a repetition (a unit attribute): fuse lets it join nothing that runs
/// before the first of them, where the original would do as well.
constexpr llvm::StringLiteral repetitionAttribute = "kernel.repetition";

/// What an operation takes, as bytes of memory traffic, as if it were computed where it is read
/// (fuse): a pointwise operation takes traffic only where a step needs its result as a tensor.
double trafficOf(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

/// All operations that the wanted results of a function need, constants too.
llvm::DenseSet<mlir::Operation *> operationsFor(mlir::func::FuncOp function,
                                                llvm::function_ref<bool(unsigned)> isWanted);

class ForwardPart {
public:
  ForwardPart() = default; // of no function
  /// The function is one after form-products. Operations of nodes whose whole names match `pattern`
  /// are forced, if there is one.
  ForwardPart(mlir::func::FuncOp function, llvm::StringRef pattern);

  /// Empty where the function computes no gradients.
  const planning::ForwardGraph &graph() const { return forward; }
  /// The graph's operations in its order.
  llvm::ArrayRef<mlir::Operation *> all() const { return operations; }
  /// One that the pattern asks for and that cannot be repeated; null where there is none.
  mlir::Operation *forcedInVain() const;

  /// In the same function of a clone of the module, lets the backward part read what repeated
  /// operations make from clones of them, each in front of the first that needs it. What is
  /// computed of forward values alone moves to its readers before. Nothing changes where nothing is
  /// repeated.
  static void repeat(mlir::func::FuncOp function, const std::vector<bool> &repeated);

private:
  void addOperation(mlir::Operation *op);
  void addUses(mlir::func::FuncOp function);

  planning::ForwardGraph forward;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::DenseMap<mlir::Value, int> values;
  mlir::SymbolTableCollection symbols;
};

} // namespace trainc
