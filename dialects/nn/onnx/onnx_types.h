// SPDX-License-Identifier: Apache-2.0
//
// The one table of ONNX's element types that tensors here can have.
#pragma once

#include "mlir/IR/Types.h"

namespace trainc::nn {

/// A type of onnx.TensorProto.DataType.
struct OnnxType {
  enum class Kind { real, integer, unsignedInteger, boolean };
  int64_t number; // in the file
  Kind kind;
  unsigned bits; // of an element in the file
};

/// Null for a type that no tensor here has: halves, strings, complex numbers.
const OnnxType *findOnnxType(int64_t number);

/// The element type of its tensors; null where there is none. uint64 is read as int64.
mlir::Type onnxElementType(mlir::MLIRContext *context, int64_t number);

/// The number of an element type; an internal error for one that has none.
int64_t onnxTypeNumber(mlir::Type element);

} // namespace trainc::nn
