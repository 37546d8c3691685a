// SPDX-License-Identifier: Apache-2.0
//
// Kernels as C++ functions with OpenMP loops.
#pragma once

#include "compiler/emit/source_writer.h"
#include "dialects/kernel/kernel.h"

namespace trainc {

/// What the emitted function of a kernel is called, and its parameters.
struct KernelNames {
  std::string function;
  llvm::SmallVector<std::string> buffers; // one per argument
};

/// Prints `void name(const float *x, float *y)` and `tail`.
void kernelSignature(kernel::FunctionOp function, const KernelNames &names, llvm::StringRef tail,
                     SourceWriter &writer);

/// Prints the definition. Errors are diagnostics of the operation concerned.
mlir::LogicalResult emitCpuKernel(kernel::FunctionOp function, const KernelNames &names,
                                  SourceWriter &writer);

} // namespace trainc
