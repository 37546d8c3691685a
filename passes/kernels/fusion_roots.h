// SPDX-License-Identifier: Apache-2.0
//
// Which values deserve a loop, as far as that can be said before loops are
// grouped: the rules that passes/fuse.cpp gives at its beginning, by the bytes
// that storing a value or computing it again would move.
#pragma once

#include "dialects/nn/nn.h"
#include "llvm/ADT/DenseSet.h"

namespace trainc {

/// Operations of a kernel's loop in the time that a byte takes from or to memory, in f32: 2 cores
/// with AVX-512 do about 200 GFLOP/s on vectors and move 20 GB/s, an A100 has 19.5 TFLOP/s to
/// 2 TB/s, an H100 67 to 3.4.
constexpr double flopsPerByte = 10;

/// A step by itself: matrix product, scatter.
bool isStep(mlir::Operation *op);

/// In memory before any kernel of the group runs: argument, step's result, table of constants.
bool isInMemory(mlir::Value value);

/// What nn::CostOpInterface says; 0 of other operations.
double flopsPerElement(mlir::Operation *op);

/// Cost of a value's expression, down to roots and tensors in memory.
struct ExpressionCost {
  double flops = 0;                         // per element
  int scalars = 1;                          // alive at once (Sethi and Ullman's number)
  double gathered = 0;                      // bytes read from rows all over a table
  llvm::SmallVector<mlir::Value, 4> leaves; // tensors read

  void read(mlir::Value tensor) {
    if (!llvm::is_contained(leaves, tensor))
      leaves.push_back(tensor);
  }
  /// Bytes that computing the value again takes, or takes the time of, without `leaves`.
  double again(mlir::Value value) const;
};

/// Bytes of the part of a tensor that a value's elements need of it.
double bytesRead(mlir::Value tensor, mlir::Value value);

/// The roots and steps of an entry function, numbered in program order.
class FusionRoots {
public:
  /// `storesLittle`: no value of several elements is a root that need not be one.
  FusionRoots(mlir::Block &block, bool storesLittle);

  void choose();
  /// A root no longer, from the next choice on: cheaper to compute where it is read.
  void repeat(mlir::Operation *op) { repeated.insert(op); }

  llvm::ArrayRef<mlir::Operation *> all() const { return roots; }
  bool contains(mlir::Operation *op) const { return numbers.contains(op); }
  /// -1 for what is not a root.
  int numberOf(mlir::Operation *op) const {
    auto found = numbers.find(op);
    return found == numbers.end() ? -1 : found->second;
  }
  /// The cost of a root, or of what is written into expressions.
  const ExpressionCost &costOf(mlir::Operation *op) const { return costs.find(op)->second; }
  /// An operand of a step or of the return.
  bool isForced(mlir::Operation *op) const { return forced.contains(op); }

private:
  void countUsers();
  void markForced();
  ExpressionCost expressionOf(mlir::Operation *op) const;
  bool deservesRoot(mlir::Operation *op, const ExpressionCost &cost) const;
  bool storingIsCheaper(mlir::Operation *op, const ExpressionCost &cost) const;

  mlir::Block &block;
  bool storesLittle;
  llvm::DenseMap<mlir::Operation *, int> users; // expressions that use the value, through views
  llvm::DenseMap<mlir::Operation *, ExpressionCost> costs;
  llvm::DenseMap<mlir::Operation *, int> numbers;
  llvm::SmallVector<mlir::Operation *> roots;
  llvm::DenseSet<mlir::Operation *> forced, repeated;
};

} // namespace trainc
