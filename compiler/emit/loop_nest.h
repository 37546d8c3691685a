// SPDX-License-Identifier: Apache-2.0
//
// The iteration space of a kernel as an emitter walks it: dimensions of size one
// dropped, neighbours that every buffer crosses with one stride merged, and for
// every value of the body the innermost loop it depends on.
#pragma once

#include "dialects/kernel/kernel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/bit.h"

namespace trainc {

class LoopNest {
public:
  explicit LoopNest(kernel::FunctionOp function);

  kernel::FunctionOp function;
  llvm::SmallVector<int64_t> sizes; // of the merged dimensions, outermost first
  size_t outer = 0;                 // leading ones in form row; in form column the walked ones
  llvm::SmallVector<llvm::SmallVector<int64_t>> strides; // per buffer
  llvm::SmallVector<int64_t> offsets;
  llvm::SmallVector<int> dimension; // of an original dimension; -1: size one

  int64_t points() const;
  /// Every address and index fits 32 bits.
  bool fitsInt() const { return small; }

  /// The merged dimensions an operation depends on, as a bit mask; the top bit
  /// stands for the results of reductions.
  uint64_t dependence(mlir::Operation *op) const { return masks.lookup(op); }
  /// The innermost of them; the same where two operations stand in one loop.
  int innermost(mlir::Operation *op) const {
    return 63 - llvm::countl_zero(masks.lookup(op) << 1 | 1);
  }
  static constexpr uint64_t reduced = uint64_t(1) << 63;

  /// Smallest and largest value of an integer where both fit an int strictly.
  bool narrowInteger(mlir::Value value) const { return ranges.contains(value); }

private:
  void merge();
  void measure();
  void analyse(mlir::Block &block, uint64_t outside);
  void inferRange(mlir::Operation &op);

  bool small = true;
  llvm::DenseMap<mlir::Operation *, uint64_t> masks;
  llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>> ranges;
};

} // namespace trainc
