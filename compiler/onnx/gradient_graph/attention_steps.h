// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// Puts products, masks and a softmax in the place of nn.attention, and in that of its gradients
/// what the gradients of these operations are.
void writeOutAttention(mlir::func::FuncOp function);

} // namespace trainc
