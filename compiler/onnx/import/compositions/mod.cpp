// SPDX-License-Identifier: Apache-2.0
//
// ONNX Mod: by default the result has the sign of the divisor, with fmod=1 of the dividend.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importMod(OnnxNode &node) {
  Builder &builder = node.builder();
  SmallVector<Value> operands{node.input(0), node.input(1)};
  Type type = tensorType(operands[0]).getElementType();
  if (tensorType(operands[1]).getElementType() != type || type.isInteger(1))
    return node.error("operands are not numbers of one type", "insert a Cast before the node");
  if (failed(builder.unify(operands)))
    return node.error("operands do not broadcast");
  Value rest = builder.create<RemainderOp>(operands[0], operands[1]);
  if (node.integer("fmod", 0))
    return SmallVector<Value>{rest};
  Value zero = builder.constant(0, rest.getType());
  Value otherSign = builder.create<XorOp>(builder.create<LessOp>(rest, zero),
                                          builder.create<LessOp>(operands[1], zero));
  Value corrects =
      builder.create<AndOp>(otherSign, builder.create<NotOp>(builder.create<EqualOp>(rest, zero)));
  return SmallVector<Value>{builder.select(corrects, builder.add(rest, operands[1]), rest)};
}

static OnnxRegistration mod("Mod", 10, importMod);

} // namespace trainc::nn
