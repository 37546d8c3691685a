// SPDX-License-Identifier: Apache-2.0
//
// A step of training as an ONNX file of standard operators: docs/gradient_graph.md.
#pragma once

#include "compiler/onnx/reader.h"

namespace trainc {

/// The file of `module`, the model's after decompose, which stays as it is. Fails with a report
/// where an operation has no form.
mlir::FailureOr<std::string> gradientGraphOf(mlir::ModuleOp module, const Model &model,
                                             llvm::StringRef modelPath, Report &report);

} // namespace trainc
