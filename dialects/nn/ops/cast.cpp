// SPDX-License-Identifier: Apache-2.0
//
// nn.cast; ONNX Cast and CastLike.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// Numbers of onnx.TensorProto.DataType.
static Type elementType(MLIRContext *context, int64_t number) {
  switch (number) {
  case 1:
    return Float32Type::get(context);
  case 6:
    return IntegerType::get(context, 32);
  case 7:
    return IntegerType::get(context, 64);
  case 9:
    return IntegerType::get(context, 1);
  case 11:
    return Float64Type::get(context);
  default:
    return {};
  }
}

static OnnxResults importCast(OnnxNode &node) {
  int64_t number = node.integer("to", 0);
  Type type = elementType(node.builder().op().getContext(), number);
  if (!type)
    return node.error("casts to data type " + llvm::Twine(number) +
                          ", which is none of float, double, int32, int64 and bool",
                      "export the model in float32");
  return SmallVector<Value>{node.builder().cast(node.input(0), type)};
}

static OnnxResults importCastLike(OnnxNode &node) {
  Type type = tensorType(node.input(1)).getElementType();
  return SmallVector<Value>{node.builder().cast(node.input(0), type)};
}

LogicalResult CastOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                    const llvm::SmallBitVector &,
                                    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(1, Value());
  Type from = getX().getType().getElementType();
  if (isa<FloatType>(from) && isa<FloatType>(getResult().getType().getElementType()))
    operandGradients[0] = builder.cast(resultGradients[0], from);
  return success();
}

double CastOp::flops() { return 0; }

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  auto type = getResult().getType();
  if (getX().getType() == type)
    return getX();
  auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getX());
  if (!splat)
    return {};
  Type from = splat.getElementType();
  if (isa<FloatType>(from)) {
    double value = splat.getSplatValue<APFloat>().convertToDouble();
    if (type.getElementType().isInteger(1))
      return splatAttribute(value != 0, type);
    if (isa<FloatType>(type.getElementType()) || std::abs(value) < 0x1p31)
      return splatAttribute(value, type);
    return {};
  }
  APInt value = splat.getSplatValue<APInt>();
  int64_t integer = from.isInteger(1) ? value.getZExtValue() : value.getSExtValue();
  if (type.getElementType().isInteger(1))
    return splatAttribute(integer != 0, type);
  if (std::abs(integer) < int64_t(1) << 31) // exact as a double and in every integer type
    return splatAttribute(static_cast<double>(integer), type);
  return {};
}

static OnnxRegistration castOp("Cast", 6, importCast);
static OnnxRegistration castLike("CastLike", 15, importCastLike);

} // namespace trainc::nn
