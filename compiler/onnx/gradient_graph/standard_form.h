// SPDX-License-Identifier: Apache-2.0
//
// Operations that ONNX has no operator for, in terms of those that it has one for.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// Rewrites what can be. What is left without an operator stays as it is.
void bringToStandardForm(mlir::func::FuncOp function);

} // namespace trainc
