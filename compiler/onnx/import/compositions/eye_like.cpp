// SPDX-License-Identifier: Apache-2.0
//
// ONNX EyeLike: ones where column - row is k.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/onnx/onnx_types.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal
    otherElements({"EyeLike"}, "types that are none of float, double, bool and the integers");

static OnnxResults importEyeLike(OnnxNode &node) {
  Builder &builder = node.builder();
  auto type = tensorType(node.input(0));
  if (type.getRank() != 2)
    return node.error("its operand has rank " + llvm::Twine(type.getRank()) + ", expected 2");
  MLIRContext *context = builder.op().getContext();
  Type element = type.getElementType();
  if (node.hasAttribute("dtype"))
    element = onnxElementType(context, node.integer("dtype", 0));
  if (!element)
    return node.error(otherElements.told("its element type is not supported"), "dtype 1 (float)");
  auto indices = type.clone(IntegerType::get(context, 64));
  Value column = builder.create<IotaOp>(indices, 1);
  Value distance = builder.sub(column, builder.create<IotaOp>(indices, 0));
  Value diagonal = builder.constant(static_cast<double>(node.integer("k", 0)), indices);
  return SmallVector<Value>{builder.cast(builder.create<EqualOp>(distance, diagonal), element)};
}

static OnnxRegistration eyeLike = OnnxRegistration("EyeLike", 9, importEyeLike).gradientOf({});

} // namespace trainc::nn
