// SPDX-License-Identifier: Apache-2.0
//
// Kernels as C++ functions with OpenMP loops.
#pragma once

#include "compiler/emit/kernel_printer.h"

namespace trainc {

/// Prints the definition. Errors are diagnostics of the operation concerned.
mlir::LogicalResult emitCpuKernel(kernel::FunctionOp function, const KernelNames &names,
                                  SourceWriter &writer);

} // namespace trainc
