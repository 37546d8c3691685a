// SPDX-License-Identifier: Apache-2.0
//
// What the dimensions of a kernel are to its body: which of them are walked for
// each result, which a value depends on, how far addresses and indexes reach.
#pragma once

#include "dialects/kernel/kernel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/bit.h"

namespace trainc {

/// Number of the argument that a load reads or a store writes; of none other.
unsigned argumentOf(mlir::Operation *access);

class LoopNest {
public:
  using Dimensions = llvm::SmallVector<size_t>;

  explicit LoopNest(kernel::FunctionOp function);

  kernel::FunctionOp function;
  llvm::ArrayRef<int64_t> sizes; // outermost first
  size_t outer = 0;              // leading dimensions: rows (form row), walked (form column)
  Dimensions kept, walked;       // of the results; inside each of them
  llvm::SmallVector<llvm::ArrayRef<int64_t>> strides; // per buffer
  llvm::SmallVector<int64_t> offsets;

  int64_t points() const;
  int64_t points(llvm::ArrayRef<size_t> dimensions) const;
  /// Every address and index fits 32 bits.
  bool fitsInt() const { return small; }

  static uint64_t bit(size_t dimension) { return uint64_t(1) << dimension; }
  static uint64_t bits(llvm::ArrayRef<size_t> dimensions);
  /// The dimensions an operation depends on, as a bit mask; the top bit stands for the
  /// results of reductions.
  uint64_t dependence(mlir::Operation *op) const { return masks.lookup(op); }
  /// The innermost of them; the same where two operations stand in one loop.
  int innermost(mlir::Operation *op) const {
    return 63 - llvm::countl_zero(masks.lookup(op) << 1 | 1);
  }
  static constexpr uint64_t reduced = uint64_t(1) << 63;

  /// The only kernel.reduce of a kernel without kernel.map where it needs nothing that is
  /// computed for each result, so that its parts can run apart from the rest; else null.
  kernel::ReduceOp onlyReduction() const;

  /// Smallest and largest value of an integer where both fit an int strictly.
  bool narrowInteger(mlir::Value value) const { return ranges.contains(value); }
  /// Whether `width` neighbours along the last dimension, whose size they divide, are one
  /// aligned vector to this load or store. Tensors begin at multiples of 64 bytes.
  bool isVector(mlir::Operation *access, int64_t width) const;

private:
  void measure();
  void analyse(mlir::Block &block);
  uint64_t ownDependence(mlir::Operation &op) const;
  void inferRange(mlir::Operation &op);

  bool small = true;
  llvm::DenseMap<mlir::Operation *, uint64_t> masks;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> ranges;
};

} // namespace trainc
