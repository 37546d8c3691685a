// SPDX-License-Identifier: Apache-2.0
//
// nn.cast; ONNX Cast and CastLike.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// Numbers of onnx.TensorProto.DataType.
Type onnxElementType(MLIRContext *context, int64_t number) {
  switch (number) {
  case 1:
    return Float32Type::get(context);
  case 2:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case 3:
    return IntegerType::get(context, 8);
  case 4:
    return IntegerType::get(context, 16, IntegerType::Unsigned);
  case 5:
    return IntegerType::get(context, 16);
  case 6:
    return IntegerType::get(context, 32);
  case 7:
  case 13: // uint64
    return IntegerType::get(context, 64);
  case 9:
    return IntegerType::get(context, 1);
  case 11:
    return Float64Type::get(context);
  case 12:
    return IntegerType::get(context, 32, IntegerType::Unsigned);
  default:
    return {};
  }
}

static OnnxResults importCast(OnnxNode &node) {
  int64_t number = node.integer("to", 0);
  Type type = onnxElementType(node.builder().op().getContext(), number);
  if (!type)
    return node.error("casts to data type " + llvm::Twine(number) +
                          ", which is none of float, double, bool and the integers",
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

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getResult().getType() ? OpFoldResult(getX()) : OpFoldResult();
}

static OnnxRegistration castOp("Cast", 6, importCast);
static OnnxRegistration castLike("CastLike", 15, importCastLike);

} // namespace trainc::nn
