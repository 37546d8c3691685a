// SPDX-License-Identifier: Apache-2.0
//
// Scalar operations (arith, math) of nn's pointwise operations.
#pragma once

#include "mlir/IR/Builders.h"

namespace trainc {

/// A function of one real number: everything that is to be said of one, except the code of
/// emitted kernels, which has its name in runtime/kernels/math.h.
struct ElementaryFunction {
  llvm::StringRef name;      // of the record in pointwise.td, and in runtime/kernels/math.h
  llvm::StringRef operation; // of the math dialect
  mlir::Value (*create)(mlir::OpBuilder &, mlir::Location, mlir::Value);
  double (*evaluate)(double); // for the reference interpreter, which rounds its result once
};

llvm::ArrayRef<ElementaryFunction> elementaryFunctions();
/// The function that an operation such as "math.exp" is; null where it is none.
const ElementaryFunction *findElementaryFunction(llvm::StringRef operation);

/// Type in which an element is computed: i32 in memory is i64 in a register.
mlir::Type scalarTypeOf(mlir::Type element);

mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location location, double value,
                           mlir::Type type);

/// Whether the pointwise operation called `name` (without its dialect) computes on scalars of this
/// type: bools and integers have not all that reals have.
bool hasScalarCode(llvm::StringRef name, unsigned operands, mlir::Type scalar);

/// The result of pointwise operation `op` (or nn.cast) on scalars.
mlir::Value buildScalar(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);

/// Conversion between the scalar types of two element types.
mlir::Value castScalar(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value,
                       mlir::Type to);

} // namespace trainc
