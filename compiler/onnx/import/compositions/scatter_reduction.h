// SPDX-License-Identifier: Apache-2.0
//
// Updates that multiply an element, or replace it by the largest or smallest of all.
//
// Every element is compared with every update of its line, which no order of updates can change and
// which has PyTorch's gradients: of several largest ones each has its share, and a product that one
// zero makes zero still has that factor's. Known weakness: the work is elements times updates.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// `table` with `updates` along `axis` where `rows`, of the shape of `updates`, says; -1 is not a
/// row. Both have one shape except along the axis. `reduction` is ONNX's: add, mul, min or max.
OnnxResults reduceUpdates(OnnxNode &node, mlir::Value table, mlir::Value rows, mlir::Value updates,
                          int64_t axis, llvm::StringRef reduction);

} // namespace trainc::nn
