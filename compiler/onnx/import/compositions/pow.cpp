// SPDX-License-Identifier: Apache-2.0
//
// ONNX Pow: the exponent has a type of its own, the result the base's.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importPow(OnnxNode &node) {
  Builder &builder = node.builder();
  SmallVector<Value> operands{node.input(0), node.input(1)};
  Type base = tensorType(operands[0]).getElementType(),
       exponent = tensorType(operands[1]).getElementType();
  if (base.isInteger(1) || exponent.isInteger(1))
    return node.error("an operand is bool, expected numbers", "insert a Cast before the node");
  // An integer to a fraction is a fraction, truncated at the end.
  Type computed = isa<FloatType>(exponent) && !isa<FloatType>(base) ? exponent : base;
  for (Value &operand : operands)
    operand = builder.cast(operand, computed);
  if (failed(builder.unify(operands)))
    return node.error("operands do not broadcast");
  return SmallVector<Value>{builder.cast(builder.create<PowOp>(operands[0], operands[1]), base)};
}

static OnnxRegistration power("Pow", 1, importPow);

} // namespace trainc::nn
