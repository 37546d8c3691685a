// SPDX-License-Identifier: Apache-2.0
//
// Operations that ONNX has no operator for, in terms of those that it has one for.
#pragma once

#include "dialects/nn/builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace trainc {

/// Rewrites what can be. What is left without an operator stays as it is.
void bringToStandardForm(mlir::func::FuncOp function);

// Parts of that, in files of their own.

/// Puts products, masks and a softmax in the place of nn.attention, and in that of its gradients
/// what the gradients of these operations are.
void writeOutAttention(mlir::func::FuncOp function);

/// Puts the steps of LSTM, GRU and RNN in their place, written out, and in that of their gradients
/// what the gradients of the steps' operations are.
void writeOutRecurrences(mlir::func::FuncOp function);

/// The numbers of nn.random_bits by arithmetic of 64-bit integers, with the same bits.
mlir::Value randomNumbers(nn::Builder &builder, nn::RandomBitsOp op);

} // namespace trainc
