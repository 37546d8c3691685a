// SPDX-License-Identifier: Apache-2.0
//
// One __global__ function: how its threads share the points of a kernel, and the
// text of its body.
#pragma once

#include "compiler/emit/kernel_printer.h"
#include "passes/lowering/partial_results.h"

namespace trainc {

/// Which part of a kernel a device function is: a cut reduction has two.
enum class Stage { whole, parts, total };

class DeviceFunction : public KernelPrinter {
public:
  DeviceFunction(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer,
                 Stage stage);

  /// What its name ends in: `_rows`.
  std::string suffix();
  /// Prints the function under `name`.
  void print();

  std::string name;

  const Stage stage;
  // How it is launched.
  int64_t blocks = 1, threads = 32, blocksY = 1;
  llvm::SmallVector<unsigned> buffers;  // arguments of the kernel that it gets
  llvm::SmallVector<std::string> parts; // names of the partial results that it gets
  int64_t partElements = 0;             // of each of them

private:
  using Dimensions = llvm::SmallVector<size_t>;
  enum class Share { thread, warp, block }; // what works on a row, a column, everything

  void emitPointwise() override;
  void emitRow() override { emitShared(); }
  void emitColumn() override;
  void emitFull() override;

  void chooseOperations();
  void splitDimensions();
  Share chooseShare();
  bool isVector(mlir::Operation *access) const;

  // ---- points and their indexes
  int64_t points(llvm::ArrayRef<size_t> dims) const;
  bool isUsed(size_t d) const;
  void printIndices(llvm::ArrayRef<size_t> dims, llvm::StringRef flat, int64_t step);
  std::string nameFlat(llvm::ArrayRef<size_t> dims, llvm::StringRef name) const;
  std::string blockNumber() const;
  void openPoints(llvm::ArrayRef<size_t> dims, llvm::StringRef name, int64_t step);
  void openGrid(llvm::ArrayRef<size_t> dims, int64_t blockCount);
  void openWalk(const std::string &first, int64_t workers, const std::string &end = "");
  void returnIf(const llvm::Twine &condition);

  // ---- bodies
  void printBody(mlir::Block &block, uint64_t printed, llvm::function_ref<void()> end);
  void emitShared();
  void openResults();
  void reduceShared(kernel::ReduceOp reduce);
  llvm::SmallVector<std::string> declareOwn(kernel::ReduceOp reduce);
  void walk(mlir::Block &block, llvm::function_ref<void()> end);
  void combineOwn(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> own);
  void printScalar(mlir::Operation &op);
  void printTail();
  void storeScalars();
  void noteLoads(mlir::Block &block);

  // ---- cut reductions
  void emitColumnRows(kernel::ReduceOp reduce);
  void emitColumnTotal(kernel::ReduceOp reduce);
  void emitFullParts(kernel::ReduceOp reduce);
  void emitFullTotal(kernel::ReduceOp reduce);

  PartialResults cut;
  llvm::DenseSet<mlir::Operation *> wanted;
  Dimensions kept, walked; // of the results; inside each of them
  uint64_t keptMask = 0;
  int64_t step = 1;            // points of a thread side by side along the last dimension
  Share share = Share::thread; // works on one result
  llvm::SmallVector<kernel::StoreOp> pending;
  llvm::DenseSet<mlir::Value> read; // buffers that all threads of a result read since a barrier
};

} // namespace trainc
