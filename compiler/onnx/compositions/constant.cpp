// SPDX-License-Identifier: Apache-2.0
//
// ONNX Constant and ConstantOfShape.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importConstant(OnnxNode &node) {
  MLIRContext *context = node.builder().op().getContext();
  auto list = [](ArrayRef<int64_t> shape, Type element) {
    return RankedTensorType::get(shape, element);
  };
  Type f32 = Float32Type::get(context), i64 = IntegerType::get(context, 64);
  if (node.hasAttribute("value")) {
    Tensor value = node.tensor("value");
    if (!value)
      return failure();
    return SmallVector<Value>{node.literal(value)};
  }
  if (node.hasAttribute("value_float"))
    return SmallVector<Value>{
        node.literal(Tensor::ofReals(list({}, f32), node.real("value_float", 0)))};
  if (node.hasAttribute("value_int"))
    return SmallVector<Value>{
        node.literal(Tensor::ofIntegers(list({}, i64), node.integer("value_int", 0)))};
  int64_t size;
  if (auto values = node.reals("value_floats")) {
    size = values->size();
    return SmallVector<Value>{node.literal(Tensor::ofReals(list(size, f32), *values))};
  }
  if (auto values = node.integers("value_ints")) {
    size = values->size();
    return SmallVector<Value>{node.literal(Tensor::ofIntegers(list(size, i64), *values))};
  }
  return node.error("its value is text or a sparse tensor, which is not supported");
}

static OnnxResults importConstantOfShape(OnnxNode &node) {
  auto shape = node.integers(0);
  if (!shape)
    return node.refuseUnknown(0, "shape");
  if (failed(countElements(node, *shape)))
    return failure();
  Tensor value = node.tensor("value");
  if (!value && !node.hasAttribute("value"))
    value = Tensor(RankedTensorType::get({}, Float32Type::get(node.builder().op().getContext())));
  if (!value)
    return failure();
  if (value.count() != 1)
    return node.error("its value is no tensor with one element");
  return SmallVector<Value>{node.literal(
      Tensor::splat(value.type().clone(*shape), ArrayRef<char>(value.at(0), value.width())))};
}

static OnnxRegistration constant("Constant", 1, importConstant);
static OnnxRegistration constantOfShape("ConstantOfShape", 9, importConstantOfShape);

} // namespace trainc::nn
