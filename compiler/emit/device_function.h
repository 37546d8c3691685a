// SPDX-License-Identifier: Apache-2.0
//
// One __global__ function, as its part of the kernel's schedule says: the text of its
// body, and with what it is launched.
#pragma once

#include "compiler/emit/kernel_printer.h"
#include "dialects/kernel/schedule.h"

namespace trainc {

/// What the name of a part of a kernel ends in: `_rows`.
llvm::StringRef deviceSuffix(kernel::FunctionOp function, kernel::Stage stage);

class DeviceFunction : public KernelPrinter {
public:
  /// Part `number` of the kernel's schedule.
  DeviceFunction(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer,
                 kernel::CudaScheduleAttr schedule, size_t number);

  /// Prints the function.
  void print();
  std::string pointType() const { return indexType.str(); }

  const std::string name;
  const kernel::DeviceFunctionAttr schedule;
  const kernel::Stage stage;
  llvm::SmallVector<unsigned> buffers;  // arguments of the kernel that it gets
  llvm::SmallVector<std::string> parts; // names of the partial results that it gets
  int64_t partElements = 0;             // of each of them

private:
  void emitPointwise() override;
  void emitRow() override { emitShared(); }
  void emitColumn() override;
  void emitFull() override;

  static std::string number(int64_t value) { return std::to_string(value); }

  // ---- device_points.cpp: points and their indexes
  bool isUsed(size_t d) const;
  void printIndices(llvm::ArrayRef<size_t> dims, llvm::StringRef flat, int64_t step);
  std::string nameFlat(llvm::ArrayRef<size_t> dims, llvm::StringRef name) const;
  std::string blockNumber() const;
  void openPoints(llvm::ArrayRef<size_t> dims, llvm::StringRef name, int64_t step);
  void openGrid(llvm::ArrayRef<size_t> dims);
  void openWalk(const std::string &first, int64_t workers, int64_t width,
                const std::string &end = "");
  void openRounds();
  bool isCut() const { return step > 1 && nest.sizes.back() % step != 0; }
  std::string packType(unsigned argument) const;
  std::string packCall(llvm::StringRef verb) const;
  std::string packOf(mlir::Operation *access);
  void openResults();
  void leaveIf(const llvm::Twine &condition, const char *how = "return;");
  void printBody(mlir::Block &block, uint64_t printed, llvm::function_ref<void()> end);

  // ---- device_shared.cpp: a thread, a warp or a block for each result
  void emitShared();
  void reduceShared(kernel::ReduceOp reduce);
  llvm::SmallVector<std::string> declareOwn(kernel::ReduceOp reduce);
  void printWalk(mlir::Block &block, llvm::function_ref<void()> end);
  void combineOwn(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> own);
  void printScalar(mlir::Operation &op);
  void printTail();
  void storeScalars();
  void noteLoads(mlir::Block &block);
  void declareHeld();

  // ---- device_parts.cpp: blocks of columns, parts and totals
  void emitColumnRows(kernel::ReduceOp reduce);
  void sumColumnRows(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> own);
  void openColumns();
  void openColumnOfThread();
  llvm::SmallVector<std::string> sumColumns(kernel::ReduceOp reduce);
  llvm::SmallVector<std::string> declareLanes(kernel::ReduceOp reduce);
  llvm::SmallVector<std::string> shareLanes(kernel::ReduceOp reduce,
                                            llvm::ArrayRef<std::string> own);
  void emitColumnTotal(kernel::ReduceOp reduce);
  void emitFullParts(kernel::ReduceOp reduce);
  void emitFullTotal(kernel::ReduceOp reduce);

  const bool inParts;          // it is told how many points it has: `points`
  const kernel::PartsAttr cut; // of the kernel; null: it is whole
  llvm::DenseSet<mlir::Operation *> wanted;
  uint64_t keptMask;
  const int64_t step; // points of a thread side by side along the last dimension
  llvm::DenseMap<unsigned, std::string> held; // rows in registers, one pack for each round
  llvm::DenseSet<unsigned> filled;            // those that a phase has read
  kernel::Worker worker;                      // on the result at hand
  llvm::SmallVector<kernel::StoreOp> pending;
  llvm::DenseSet<mlir::Value> read; // buffers that all threads of a result read since a barrier
};

} // namespace trainc
