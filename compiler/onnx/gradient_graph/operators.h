// SPDX-License-Identifier: Apache-2.0
//
// Which operators of ONNX an operation is.
#pragma once

#include "compiler/onnx/gradient_graph/graph_writer.h"

namespace trainc {

/// The operator set that the nodes are of.
constexpr int64_t kGradientGraphOpset = 20;

bool isOperator(mlir::Operation *op);
/// Writes the nodes of an operation that has operators.
void writeOperator(GraphWriter &writer, mlir::Operation *op);

} // namespace trainc
