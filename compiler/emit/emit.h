// SPDX-License-Identifier: Apache-2.0
//
// From planned kernel IR to a source folder and from there to a program.
#pragma once

#include "compiler/emit/program_tables.h"
#include "compiler/report.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "runtime/plan/plan.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>
#include <vector>

namespace trainc {

/// Writes kernels.h, kernels.cpp or kernels.cu, memory.h, step.{h,cpp}, constants.{h,cpp},
/// for large constants constants.bin, trainer.cpp and CMakeLists.txt into `directory`, which
/// exists. `module` holds kernel.functions and the planned entry functions @forward_backward,
/// @update,
/// @evaluate; everything else comes from its attributes (program_tables.h) and the version of this
/// compiler. What cannot be written is an error of `report`, others are diagnostics of `module`.
/// Returns where the files have the parts of the plan.
mlir::FailureOr<source_map> emitSources(mlir::ModuleOp module, llvm::StringRef compilerVersion,
                                        llvm::StringRef directory, Report &report);

/// The emitted files that hold no loops, only calls and tables. They grow with the number of
/// layers and run for microseconds, so they are compiled with what compiles quickest.
llvm::ArrayRef<llvm::StringRef> filesWithoutLoops();
llvm::ArrayRef<llvm::StringRef> flagsWithoutLoops();

struct CompileOptions {
  std::string compiler = "g++";
  std::string directory;             // the emitted folder
  std::vector<std::string> includes; // folders that hold runtime/
  std::string march;
  std::vector<std::string> linkArguments; // runtime archive, libraries
  std::vector<std::string> runPath;       // for the linker: where the program finds libraries
  std::string output;                     // the program; empty: none
  std::string log;                        // commands and messages; empty: compile.log in the folder
  std::string optimization = "-O3";       // of files with loops
  bool shared = false;                    // a shared library instead of a program
  /// Besides the program: FOLDER/libNAME.so and .a, which have the functions NAME_... alone
  /// (library.cpp of the emitted folder). Empty: none.
  std::string libraryFolder, libraryName;
  /// The library is one of one thread, which needs libc and libm alone; the runtime's files that it
  /// has are compiled with it, with no archive (minimalLibraryUnits).
  bool isMinimal = false;
  std::string toolPrefix;           // of the programs that make an archive: `aarch64-linux-gnu-`
  std::vector<std::string> sources; // empty: every .cpp and .cu of the folder and of `folders`
  std::vector<std::string> folders; // in it
  std::string nvcc;                 // for .cu files
  std::vector<std::string> cudaArchitectures;
  std::string registers;          // file for the table of what nvcc gave each kernel
  bool warningsAreErrors = false; // for tests: another compiler may warn of what ours does not
  /// Where set: called when the program is linked; links it again with these arguments for
  /// `runPath`, or leaves it where there are none.
  std::function<std::vector<std::string>()> linkAgainWith;
};

/// Compiles the folder's files side by side, through ccache where that is on PATH, and links them,
/// without a shell. On failure `message`
/// ends with the log's path and its last lines; after warnings it says so, with the log's path.
/// Otherwise there is no log.
bool compileSources(const CompileOptions &options, std::string &message);

/// Flags of nvcc beside architectures and folders. Bits must not depend on contraction.
llvm::ArrayRef<llvm::StringRef> nvccFlags();
/// Flags of the host compiler for C++, except optimisation and instruction set.
llvm::ArrayRef<llvm::StringRef> hostFlags();

/// The output of `nvcc -Xptxas -v` as a sorted table.
register_table registerTable(llvm::StringRef log);

} // namespace trainc
