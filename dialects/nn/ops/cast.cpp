// SPDX-License-Identifier: Apache-2.0
//
// nn.cast; ONNX Cast and CastLike.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/onnx/onnx_types.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherTypes({"Cast"},
                                    "types that are none of float, double, bool and the integers");

// What people call a type that no tensor here has.
static std::string nameOfOther(int64_t number) {
  switch (number) {
  case 8:
    return "string";
  case 10:
    return "float16";
  case 14:
    return "complex64";
  case 15:
    return "complex128";
  case 16:
    return "bfloat16";
  default:
    return "data type " + std::to_string(number);
  }
}

static OnnxResults importCast(OnnxNode &node) {
  int64_t number = node.integer("to", 0);
  Type type = onnxElementType(node.builder().op().getContext(), number);
  if (!type)
    return node.error(otherTypes.told("casts to " + nameOfOther(number) +
                                      ", which is none of float, double, bool and the integers"),
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
  if (!isa<FloatType>(from) || !isa<FloatType>(getResult().getType().getElementType()))
    return success();
  // A parameter's gradient is not rounded only because the product read it rounded.
  auto rounded = resultGradients[0].getDefiningOp<CastOp>();
  bool isOfParameter = isa<BlockArgument>(getX());
  operandGradients[0] = rounded && isOfParameter && rounded.getX().getType() == getX().getType()
                            ? Value(rounded.getX())
                            : builder.cast(resultGradients[0], from);
  return success();
}

double CastOp::flops() { return 0; }

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getResult().getType())
    return getX();
  // Every narrow float is an f32, and every f32 an f64.
  auto inner = getX().getDefiningOp<CastOp>();
  if (inner && inner.getX().getType() == getResult().getType() &&
      isa<FloatType>(getResult().getType().getElementType()) &&
      isa<FloatType>(getX().getType().getElementType()) &&
      elementBytes(getX().getType().getElementType()) >
          elementBytes(getResult().getType().getElementType()))
    return inner.getX();
  return {};
}

static OnnxRegistration castOp("Cast", 6, importCast);
static OnnxRegistration castLike = OnnxRegistration("CastLike", 15, importCastLike).gradientOf({0});

} // namespace trainc::nn
