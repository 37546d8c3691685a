// SPDX-License-Identifier: Apache-2.0
//
// A step of training as an ONNX file of standard operators: docs/gradient_graph.md.
#pragma once

#include "compiler/onnx/reader.h"

namespace trainc {

/// Writes the graph of `module`, the model's after decompose, which stays as it is. `read` are
/// files that it may not take the place of.
mlir::LogicalResult writeGradientGraph(mlir::ModuleOp module, const Model &model,
                                       llvm::StringRef modelPath, llvm::StringRef path,
                                       llvm::ArrayRef<std::string> read, Report &report);

} // namespace trainc
