// SPDX-License-Identifier: Apache-2.0
//
// ONNX Constant and ConstantOfShape.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal otherValues({"Constant"}, "text; sparse tensors");

static OnnxResults importConstant(OnnxNode &node) {
  for (StringRef name : {"value", "value_float", "value_floats", "value_int", "value_ints"}) {
    if (!node.hasAttribute(name))
      continue;
    Tensor value = node.tensor(name);
    if (!value)
      return failure();
    return SmallVector<Value>{node.literal(value)};
  }
  return node.error(
      otherValues.told("its value is text or a sparse tensor, which is not supported"),
      "a dense tensor of numbers");
}

static OnnxResults importConstantOfShape(OnnxNode &node) {
  auto shape = node.integers(0);
  if (failed(countElements(node, *shape)))
    return failure();
  Tensor value = node.tensor("value");
  if (!value && !node.hasAttribute("value"))
    value = Tensor(RankedTensorType::get({}, Float32Type::get(node.builder().op().getContext())));
  if (!value)
    return failure();
  if (value.count() != 1)
    return node.error("its value is not a tensor with one element");
  return SmallVector<Value>{node.literal(
      Tensor::splat(value.type().clone(*shape), ArrayRef<char>(value.at(0), value.width())))};
}

static OnnxRegistration constant = OnnxRegistration("Constant", 1, importConstant).gradientOf({});
static OnnxRegistration constantOfShape =
    OnnxRegistration("ConstantOfShape", 9, importConstantOfShape)
        .gradientOf({})
        .mustKnow(0, "shape");

} // namespace trainc::nn
