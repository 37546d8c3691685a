// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// Puts the steps of LSTM, GRU and RNN in their place, written out, and in that of their gradients
/// what the gradients of the steps' operations are.
void writeOutRecurrences(mlir::func::FuncOp function);

} // namespace trainc
