// SPDX-License-Identifier: Apache-2.0
//
// Kernels as CUDA C++: __global__ functions, and for each kernel the host function
// that launches them.
#pragma once

#include "compiler/emit/kernel_printer.h"

namespace trainc {

/// Prints the definition. `elements` are those of the tensors that launches pass as inputs, -1
/// where they differ. Errors are diagnostics of the operation concerned.
mlir::LogicalResult emitCudaKernel(kernel::FunctionOp function, const KernelNames &names,
                                   llvm::ArrayRef<int64_t> elements, SourceWriter &writer);

} // namespace trainc
