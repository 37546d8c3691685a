// SPDX-License-Identifier: Apache-2.0
//
// What ONNX's pools say alike.
#pragma once

#include "dialects/nn/window.h"

namespace trainc::nn {

struct WindowPool {
  llvm::SmallVector<int64_t> kernel;
  WindowAttributes windows; // pads reach as far as the last window does
  /// By dimension of space: elements and the pads that the node asks for. What a window that
  /// ceil_mode adds has beyond that counts nowhere.
  llvm::SmallVector<int64_t> counted;
};

/// For each window the value that stands where x is largest.
mlir::Value maxPool(Builder &builder, mlir::Value x, mlir::Value values, const WindowPool &pool);
/// The sum of each window.
mlir::Value sumPool(Builder &builder, mlir::Value x, const WindowPool &pool);

/// Reads what MaxPool, AveragePool and LpPool say of their windows, or reports what is wrong.
mlir::FailureOr<WindowPool> readPool(OnnxNode &node);
/// A pool of whole planes, of an operand that is checked for having some.
mlir::FailureOr<WindowPool> globalPool(OnnxNode &node);

} // namespace trainc::nn
