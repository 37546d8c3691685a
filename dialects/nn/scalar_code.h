// SPDX-License-Identifier: Apache-2.0
//
// Scalar operations (arith, math) of nn's pointwise operations.
#pragma once

#include "mlir/IR/Builders.h"

namespace trainc {

/// Type in which an element is computed: i32 in memory is i64 in a register.
mlir::Type scalarTypeOf(mlir::Type element);

mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location location, double value,
                           mlir::Type type);

/// The result of pointwise operation `op` (or nn.cast) on scalars.
mlir::Value buildScalar(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands);

/// Conversion between the scalar types of two element types.
mlir::Value castScalar(mlir::OpBuilder &builder, mlir::Location location, mlir::Value value,
                       mlir::Type to);

} // namespace trainc
