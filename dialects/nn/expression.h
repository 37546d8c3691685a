// SPDX-License-Identifier: Apache-2.0
//
// The expressions of pointwise.td, parsed once into a tree and built either as
// tensor operations (gradients) or, by the lowering, as scalar operations.
//
//   expression := sum [('<' | '<=' | '>' | '>=' | '==') sum]
//   sum := product (('+' | '-') product)*      product := unary (('*' | '/') unary)*
//   unary := '-' unary | number | name | name '(' expression (',' expression)* ')' | '(' expression
//   ')'
//
// A called name is the mnemonic of a pointwise record; operators stand for add,
// sub, mul, div, neg and the comparisons.
#pragma once

#include "dialects/nn/builder.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <vector>

namespace trainc::nn {

struct Expression {
  enum class Kind { number, name, call };
  Kind kind;
  double number = 0; // of a number
  std::string name;  // of a name; of a call: the mnemonic
  std::vector<std::unique_ptr<Expression>> operands;
};

/// The parsed form of `text`, cached for the life of the process. A malformed
/// text is an internal error (dialects/errors/internal_error.h).
const Expression &parseExpression(llvm::StringRef text);

/// Builds `expression` as nn operations over tensors. Numbers become splats of
/// the type of the neighbouring operand.
mlir::Value buildExpression(Builder &builder, const Expression &expression,
                            const llvm::StringMap<mlir::Value> &names);

/// Gradient of a pointwise operation from its record's expressions.
mlir::LogicalResult buildPointwiseGradient(mlir::Operation *op, Builder &builder,
                                           llvm::ArrayRef<mlir::Value> resultGradients,
                                           const llvm::SmallBitVector &needed,
                                           llvm::SmallVectorImpl<mlir::Value> &operandGradients);

} // namespace trainc::nn
