// SPDX-License-Identifier: Apache-2.0
//
// One kernel as a C++ function with OpenMP loops, as its schedule says. Which thread
// computes a result never changes how. Reductions follow runtime/kernels/lanes.h.
#pragma once

#include "compiler/emit/kernel_printer.h"

namespace trainc {

class CpuKernel : public KernelPrinter {
public:
  CpuKernel(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer,
            kernel::CpuScheduleAttr schedule)
      : KernelPrinter(function, names, writer), schedule(schedule), inParts(names.inParts) {}

private:
  void emitPointwise() override;
  void emitRow() override;
  void openRowsOfPart();
  void emitColumn() override;
  void emitFull() override;

  void shareLoops();
  void openLoops(llvm::ArrayRef<size_t> dims);
  void printLoops(mlir::Block &block, llvm::ArrayRef<size_t> dims);
  void mapPoints(kernel::MapOp map);
  llvm::SmallVector<std::string> declarePartials(kernel::ReduceOp reduce, llvm::StringRef count);
  void reduceRow(kernel::ReduceOp reduce, llvm::ArrayRef<size_t> dims);
  void openLanes(mlir::Block &block, size_t d, llvm::StringRef begin, llvm::StringRef end);

  // ---- cpu_columns.cpp
  void columnPhases(uint64_t outer);
  void columnLoops(mlir::Block &block, uint64_t outer, llvm::function_ref<void()> end);
  void columnScalars(llvm::ArrayRef<mlir::Operation *> operations, uint64_t outer);
  void emitColumnChunks();
  void sumChunk(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> parts);

  // ---- cpu_full.cpp
  void reduceBlocks(kernel::ReduceOp reduce);
  void sumBlock(kernel::ReduceOp reduce, llvm::ArrayRef<std::string> parts);
  void openBlockRows();

  const kernel::CpuScheduleAttr schedule;
  const bool inParts;
  NameTable outsideLoops; // names visible after the loops that printLoops opened
};

} // namespace trainc
