// SPDX-License-Identifier: Apache-2.0
//
// What the kernel printers of all targets share: signatures, the text of
// reductions, and which operations stand at which depth of the loops. A target
// adds the loops themselves.
#pragma once

#include "compiler/emit/expressions.h"
#include "llvm/ADT/DenseSet.h"

namespace trainc {

/// `const float *x`, for a parameter that the function may not use [[maybe_unused]].
std::string bufferParameter(kernel::FunctionOp function, unsigned argument, llvm::StringRef name);

/// Prints `void name(const float *x, float *y)` and `tail`.
void kernelSignature(kernel::FunctionOp function, const KernelNames &names, llvm::StringRef tail,
                     SourceWriter &writer);

/// Calls `print`; fails where it reported an error on an operation.
mlir::LogicalResult printKernel(kernel::FunctionOp function, llvm::function_ref<void()> print);

struct ReductionText {
  std::string partial; // name of the partial results
  std::string result;
  std::string verb; // begins the names of the functions that combine
};
/// The words for one result of a kernel.reduce.
ReductionText reductionText(mlir::Value result);

/// The element that a reduction starts from.
std::string neutralText(kernel::Reduction kind, mlir::Type type);

/// `into = into (op) value;` for one reduction of elements of `type`.
std::string combinationText(kernel::Reduction kind, mlir::Type type, const std::string &into,
                            const std::string &value);

class KernelPrinter {
public:
  KernelPrinter(const KernelPrinter &) = delete; // its parts refer to each other
  KernelPrinter &operator=(const KernelPrinter &) = delete;
  virtual ~KernelPrinter() = default;
  /// Prints the body.
  void emit();

protected:
  KernelPrinter(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer);

  static uint64_t bit(size_t d) { return LoopNest::bit(d); }
  static constexpr uint64_t everything = ~uint64_t(0) >> 1; // all dimensions: stores too
  static constexpr uint64_t nothing = ~uint64_t(0);         // as `previous`: no loop is open yet

  std::string size(size_t d) const { return std::to_string(nest.sizes[d]); }
  void openLoop(size_t d);
  void close(size_t count);
  /// Operations that depend on no index, of those that `wanted` holds for: before all loops.
  void printPrologue(llvm::function_ref<bool(mlir::Operation *)> wanted);
  void printPrologue() {
    printPrologue([](mlir::Operation *) { return true; });
  }
  bool isPrologue(mlir::Operation &op) const { return prologue.contains(&op); }
  /// Operations of a region's block which depend on nothing but `visible` dimensions
  /// and were not printed for the fewer dimensions `previous`.
  void printAt(mlir::Block &block, uint64_t visible, uint64_t previous);
  /// Combines what the region yields into `partials[k] + at`.
  void yieldInto(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> partials, llvm::StringRef at);
  /// Calls with kind, result and number of each reduction of the operation.
  void eachReduction(kernel::ReduceOp reduce,
                     llvm::function_ref<void(kernel::Reduction, mlir::Value, size_t)> call);
  /// A reduction over one element: its results are what the region yields.
  void reduceNothing(kernel::ReduceOp reduce);
  /// For each reduction a variable that starts neutral and a loop that combines partial results
  /// into it: the loop's head and one partial result, given type and number of the reduction.
  void
  combineInOrder(kernel::ReduceOp reduce,
                 llvm::function_ref<std::pair<std::string, std::string>(mlir::Type, size_t)> loop);

  virtual void emitPointwise() = 0;
  virtual void emitRow() = 0;
  virtual void emitColumn() = 0;
  virtual void emitFull() = 0;

  kernel::FunctionOp function;
  LoopNest nest;
  SourceWriter &writer;
  ExpressionPrinter code;
  llvm::StringRef indexType;

private:
  llvm::DenseSet<mlir::Operation *> prologue;
};

} // namespace trainc
