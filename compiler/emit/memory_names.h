// SPDX-License-Identifier: Apache-2.0
//
// Names and places of the tensors of a planned module: what memory.h declares
// and step.cpp refers to.
#pragma once

#include "compiler/emit/emit.h"
#include "compiler/emit/source_writer.h"
#include "compiler/emit/value_names.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace trainc {

struct PlacedTensor {
  std::string name;  // the constant in memory.h
  std::string value; // what the model calls it: `h.0.ln_1.mean`
  std::string title; // the node that computes it, for the comment
  kernel::PlaceAttr place;
  mlir::RankedTensorType type;
  static constexpr int noStep = -1;
  int firstStep = noStep, lastStep = noStep; // as the plan numbers them
};

/// `f32 [4, 64, 3072]`.
std::string typeText(mlir::Type type);

/// Name of a kernel's output `argument`, after the node that stores it.
std::string outputName(kernel::FunctionOp function, unsigned argument);

class MemoryNames {
public:
  /// `entries` are the entry functions.
  MemoryNames(mlir::ModuleOp module, llvm::ArrayRef<mlir::func::FuncOp> entries)
      : module(module), entryFunctions(entries) {}
  /// Collects places; diagnostics where a value has none.
  mlir::LogicalResult collect();

  /// The tensor of a value; views (nn.reshape) are their operand's.
  const PlacedTensor *find(mlir::Value value) const;
  llvm::ArrayRef<mlir::func::FuncOp> entries() const { return entryFunctions; }
  llvm::ArrayRef<const PlacedTensor *> shared() const { return sharedTensors; }
  llvm::ArrayRef<const PlacedTensor *> ofEntry(llvm::StringRef entry) const;
  /// One operation for each distinct table of constants, by offset.
  llvm::ArrayRef<nn::ConstantOp> constants() const { return constantOps; }

private:
  mlir::LogicalResult collectEntry(mlir::func::FuncOp function);
  void holdResults(mlir::func::FuncOp function, int end);
  void listOwn(mlir::func::FuncOp function);
  mlir::LogicalResult add(mlir::Value value, mlir::Attribute place, llvm::StringRef name,
                          const std::string &title, bool isShared, NameTable &names);
  mlir::LogicalResult addArgument(mlir::func::FuncOp function, unsigned index, NameTable &names);
  std::string resultName(kernel::StepOpInterface step, unsigned result);
  mlir::LogicalResult addConstant(nn::ConstantOp op);

  mlir::ModuleOp module;
  mlir::SymbolTableCollection symbols;
  llvm::SmallVector<mlir::func::FuncOp> entryFunctions;
  NameTable sharedNames;
  std::vector<std::unique_ptr<PlacedTensor>> tensors;
  llvm::DenseMap<mlir::Value, PlacedTensor *> places;
  llvm::StringMap<PlacedTensor *> sharedByKey; // arena, offset and model name
  llvm::SmallVector<const PlacedTensor *> sharedTensors;
  llvm::StringMap<llvm::SmallVector<const PlacedTensor *>> entryTensors;
  llvm::DenseMap<mlir::Attribute, PlacedTensor *> constantByPlace;
  llvm::SmallVector<nn::ConstantOp> constantOps;
};

/// In memory.h, from 1.
using TensorLines = llvm::DenseMap<const PlacedTensor *, int>;

/// Text of memory.h, and where it has each tensor.
std::string memoryHeader(mlir::ModuleOp module, const MemoryNames &names, TensorLines &lines);

} // namespace trainc
