// SPDX-License-Identifier: Apache-2.0
//
// C++ face of the nn dialect (nn.td, pointwise.td and ops/*.td).
#pragma once

#include "dialects/elements/element_type.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/tensor.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"
#include <cmath>

namespace trainc::nn {

class Builder;
class StepBuilder;

/// A value and what takes its place.
struct Replacement {
  mlir::Value old, replacement;
};

/// An operation whose results do not depend smoothly on its operands, or whose
/// operands carry no gradient: differentiation stops here, knowingly.
template <typename ConcreteType>
class NotDifferentiable : public mlir::OpTrait::TraitBase<ConcreteType, NotDifferentiable> {};

template <typename ConcreteType>
class MovesElements : public mlir::OpTrait::TraitBase<ConcreteType, MovesElements> {};

template <typename ConcreteType>
class VariesByStep : public mlir::OpTrait::TraitBase<ConcreteType, VariesByStep> {};

template <typename ConcreteType>
class OnlyCompiled : public mlir::OpTrait::TraitBase<ConcreteType, OnlyCompiled> {};

/// How far the f32 value of a pointwise operation may be from the exact one (pointwise.td).
struct Accuracy {
  double ulp;   // negative: the operation takes no floats
  bool cancels; // the unit is that of the largest operand, not of the result
};

/// Result type of a pointwise operation: the operands' shape with the element
/// type of the last operand (`kind` "same") or i1 ("bool").
mlir::LogicalResult inferPointwiseType(std::optional<mlir::Location> location,
                                       mlir::ValueRange operands, llvm::StringRef kind,
                                       llvm::SmallVectorImpl<mlir::Type> &types);

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The key in what attention reads beside its matrices: masks, then maybe a key (ops/attention.td).
inline mlir::Value keyOf(mlir::ValueRange masksAndKey) {
  bool has = !masksAndKey.empty() && tensorType(masksAndKey.back()).getRank() == 0;
  return has ? masksAndKey.back() : mlir::Value();
}
inline mlir::ValueRange masksOf(mlir::ValueRange masksAndKey) {
  return masksAndKey.drop_back(keyOf(masksAndKey) ? 1 : 0);
}

} // namespace trainc::nn

#include "dialects/nn/interfaces.h.inc"
#include "dialects/nn/nn_dialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/nn/nn_ops.h.inc"
