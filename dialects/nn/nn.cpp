// SPDX-License-Identifier: Apache-2.0
//
// Registration of the nn dialect and the rule of pointwise result types.
//
// The classes of its operations are in units of their own (../CMakeLists.txt).
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

#include "dialects/nn/interfaces.cpp.inc"
#include "dialects/nn/nn_dialect.cpp.inc"

void trainc::nn::NNDialect::initialize() { registerNNDialectOperations(this); }

Operation *trainc::nn::NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                                      Type type, Location location) {
  auto elements = llvm::dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return builder.create<ConstantOp>(location, elements);
}

LogicalResult trainc::nn::inferPointwiseType(std::optional<Location> location, ValueRange operands,
                                             StringRef kind, SmallVectorImpl<Type> &types) {
  SmallVector<RankedTensorType> operandTypes;
  for (Value operand : operands) {
    operandTypes.push_back(llvm::dyn_cast<RankedTensorType>(operand.getType()));
    if (!operandTypes.back())
      return emitOptionalError(location, "expects ranked tensors, found ", operand.getType());
  }
  RankedTensorType last = operandTypes.back();
  for (RankedTensorType type : operandTypes)
    if (type.getShape() != last.getShape()) // pointwise-c1
      return emitOptionalError(location, "operands have one shape, found ", type, " and ", last);
  ArrayRef<RankedTensorType> values = operandTypes;
  if (values.size() == 3) {
    if (!values.front().getElementType().isInteger(1)) // pointwise-c2
      return emitOptionalError(location, "the condition is bool, found ", values.front());
    values = values.drop_front();
  }
  for (RankedTensorType type : values)
    if (type.getElementType() != last.getElementType()) // pointwise-c2
      return emitOptionalError(location, "operands have one element type, found ", type, " and ",
                               last);
  Type element = last.getElementType();
  if (kind == "bool")
    element = IntegerType::get(last.getContext(), 1);
  types.push_back(RankedTensorType::get(last.getShape(), element));
  return success();
}
