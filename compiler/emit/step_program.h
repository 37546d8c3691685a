// SPDX-License-Identifier: Apache-2.0
//
// The entry functions as sequences of calls, the data of constants, the tables
// of the trainer and the build file.
#pragma once

#include "compiler/emit/kernel_printer.h"
#include "compiler/emit/memory_names.h"
#include "runtime/plan/plan.h"

namespace trainc {

/// Names of all kernels, by symbol.
using KernelTable = llvm::StringMap<KernelNames>;

/// The files that hold a module's code, by their names' stems.
struct EmittedCode {
  std::string kernelsHeader, kernels, memory, constantsHeader, constants, constantsData, step;
  source_map map;
};

/// Code of the kernels and of the entry functions named.
mlir::FailureOr<EmittedCode> emitCode(mlir::ModuleOp module, const MemoryNames &memory,
                                      llvm::StringRef target = "cpu");

/// Bytes of the largest tensor that a step exchanges with other ranks; 0: none does.
int64_t rankExchangeBytes(mlir::ModuleOp module);
/// Text of step.cpp; its entries and steps are added to `map`.
std::string stepProgram(mlir::ModuleOp module, const MemoryNames &names, const KernelTable &kernels,
                        llvm::StringRef target, source_map &map);
/// Text of constants.h and constants.cpp, and how the program's table refers to them.
std::string constantsHeader(const MemoryNames &names);
std::string constantsSource(const MemoryNames &names);
/// Bytes of constants.bin; empty where the tables are C++ text.
std::string constantsData(const MemoryNames &names);
llvm::StringRef constantsAddress(const MemoryNames &names);
/// Text of trainer.cpp; diagnostics where the IR lacks something that a table needs.
mlir::FailureOr<std::string> trainerTables(mlir::ModuleOp module, const ProgramTables &tables,
                                           const MemoryNames &names);
/// Text of CMakeLists.txt.
std::string buildFile(const ProgramTables &tables);

} // namespace trainc
