// SPDX-License-Identifier: Apache-2.0
//
// Registration of the nn dialect and the rule of pointwise result types.
#include "dialects/nn/nn.h"
#include "dialects/nn/builder.h"

using namespace mlir;

#include "dialects/nn/interfaces.cpp.inc"
#include "dialects/nn/nn_dialect.cpp.inc"

void trainc::nn::NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/nn_ops.cpp.inc"
      >();
}

LogicalResult trainc::nn::inferPointwiseType(std::optional<Location> location, ValueRange operands,
                                             StringRef kind, SmallVectorImpl<Type> &types) {
  auto last = llvm::dyn_cast<RankedTensorType>(operands.back().getType());
  if (!last)
    return emitOptionalError(location, "expects ranked tensors, found ", operands.back().getType());
  for (Value operand : operands) {
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getShape() != last.getShape())
      return emitOptionalError(location, "operands have one shape, found ", operand.getType(),
                               " and ", last);
  }
  Type element = last.getElementType();
  if (kind == "bool")
    element = IntegerType::get(last.getContext(), 1);
  types.push_back(RankedTensorType::get(last.getShape(), element));
  return success();
}

#define GET_OP_CLASSES
#include "dialects/nn/nn_ops.cpp.inc"
