// SPDX-License-Identifier: Apache-2.0
//
// ONNX IsInf, of either sign or one.
#include "dialects/nn/onnx/onnx_node.h"
#include <limits>

using namespace mlir;

namespace trainc::nn {

static OnnxResults importIsInf(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Value found = builder.constant(0, type.clone(builder.op().getI1Type()));
  for (auto [attribute, value] :
       {std::pair("detect_positive", infinity), std::pair("detect_negative", -infinity)})
    if (node.integer(attribute, 1))
      found =
          builder.create<OrOp>(found, builder.create<EqualOp>(x, builder.constant(value, type)));
  return SmallVector<Value>{found};
}

static OnnxRegistration isInf = OnnxRegistration("IsInf", 10, importIsInf).gradientOf({});

} // namespace trainc::nn
