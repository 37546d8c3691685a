// SPDX-License-Identifier: Apache-2.0
//
// What the module says of the program as a whole, beside its functions. The IR of every pass
// has it, so that trainc-emit writes the source folder that trainc would.
#pragma once

#include "compiler/export_entry.h"
#include "dialects/train/optimizer.h"
#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace trainc {

using HyperparameterEntry = train::Hyperparameter;

/// What the trainer computes on.
struct Target {
  std::string name = "cpu"; // or cuda
  std::string march;        // of the CPU, or `sm_80, sm_90`
  std::vector<std::string> cudaArchitectures;
};

struct ProgramTables {
  std::string modelName;
  std::string compilerVersion;
  Target target;
  std::string precision; // as --precision has it
  std::string lossName;
  bool lossIsLogPerplexity = false;
  std::string optimizerName;
  uint64_t fingerprint = 0;
  std::string graphDigest, objective; // what is computed from the parameters; empty: not known
  std::vector<std::string> stateNames;
  std::vector<HyperparameterEntry> hyperparameters; // tunable ones only
  std::vector<ExportEntry> exports;
  std::vector<ExportEntry> moduleTensors; // by what the module calls them
  std::vector<StatePiece> statePieces;
  std::vector<StateConstant> stateConstants;
  std::vector<AdapterEntry> adapters;
  std::set<std::string> infiniteParameters; // that hold -infinity from the start
};

void setTarget(mlir::ModuleOp module, const Target &target);
void setExports(mlir::ModuleOp module, llvm::ArrayRef<ExportEntry> exports);
void setModuleTensors(mlir::ModuleOp module, llvm::ArrayRef<ExportEntry> tensors);
void setStatePieces(mlir::ModuleOp module, llvm::ArrayRef<StatePiece> pieces);
void setStateConstants(mlir::ModuleOp module, llvm::ArrayRef<StateConstant> constants);
/// The forms that frozen weights are mapped in.
void setStoredForms(mlir::ModuleOp module, llvm::ArrayRef<FrozenWeight> weights);
/// Where those lie that stay in files of their own.
void setFrozenFiles(mlir::ModuleOp module, const FrozenFiles &files);
/// Where plan-memory has put their tensors, by their places.
std::vector<FrozenTensor> frozenTensorsOf(mlir::ModuleOp module);
void setAdapters(mlir::ModuleOp module, llvm::ArrayRef<AdapterEntry> adapters);
void setInfiniteParameters(mlir::ModuleOp module, llvm::ArrayRef<std::string> names);

/// A digest of what a checkpoint depends on: parameters in order, with shapes, precision and
/// optimizer.
uint64_t fingerprintOf(mlir::ModuleOp module);

/// The tables of a planned module. What it does not say is empty.
ProgramTables programTables(mlir::ModuleOp module, llvm::StringRef compilerVersion);

} // namespace trainc
