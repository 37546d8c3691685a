// SPDX-License-Identifier: Apache-2.0
//
// ONNX Gelu, exact or by tanh.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGelu(OnnxNode &node) {
  Value x = node.input(0);
  std::string approximate = node.string("approximate", "none");
  if (!isa<FloatType>(tensorType(x).getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  if (approximate == "tanh")
    return SmallVector<Value>{node.builder().create<GeluTanhOp>(x)};
  if (approximate == "none")
    return SmallVector<Value>{node.builder().create<GeluOp>(x)};
  return node.error("unknown approximation '" + approximate + "'", "none or tanh");
}

static OnnxRegistration gelu("Gelu", 20, importGelu);

} // namespace trainc::nn
