// SPDX-License-Identifier: Apache-2.0
//
// Registration of the patterns that recognise a composite operation written out
// in primitives, and what several of them match with.
#pragma once

#include "dialects/nn/builder.h"
#include "mlir/IR/PatternMatch.h"

namespace trainc::nn {

/// Registers patterns that raise chains of primitives to a composite operation. Static
/// objects of this class stand at the end of the file of the operation; raise-patterns
/// applies all of them together until none matches.
struct RaiseRegistration {
  RaiseRegistration(void (*add)(mlir::RewritePatternSet &));
};

void addRaisePatterns(mlir::RewritePatternSet &patterns);

/// The number that a constant of floats has in every element.
std::optional<double> splatOfFloats(mlir::Value value);

/// Equal up to the rounding of a constant that an exporter wrote with 7 digits.
bool isNear(double value, double expected);

/// The name of the module that a raised chain was, where the names of its nodes say so:
/// `h.0.mlp.act` of `h.0.mlp.act.mul_4` and `h.0.mlp.act.tanh`; else that of its last node.
mlir::Location wholeLocation(mlir::Operation *last, mlir::Operation *part);

/// A product as one number and the factors that are not numbers, so that the order of
/// multiplication does not matter.
struct Product {
  double number = 1;
  llvm::SmallVector<mlir::Value> factors;

  explicit Product(mlir::Value value) { multiply(value); }

  /// Removes x itself, which may be a product, from the factors; false where it is not in it.
  bool remove(mlir::Value x);
  /// Whether the factors are x `power` times and nothing else; removes them.
  bool isPower(mlir::Value x, unsigned power);

private:
  void multiply(mlir::Value value);
};

/// The other operand of an addition of the constant `number`; null otherwise.
mlir::Value addedTo(mlir::Value sum, double number);

} // namespace trainc::nn
