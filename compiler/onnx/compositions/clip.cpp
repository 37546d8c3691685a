// SPDX-License-Identifier: Apache-2.0
//
// ONNX Clip. Bounds are attributes below opset 11, optional inputs from there on. A value
// equal to a bound passes the whole gradient, as in PyTorch's clamp; NaN stays NaN.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static Value clipAt(Builder &builder, Value x, Value bound, bool lower, bool boundKnown) {
  bound = builder.broadcastTo(bound, tensorType(x).getShape());
  Value beyond = lower ? builder.create<LessOp>(x, bound) : builder.create<GreaterOp>(x, bound);
  if (!boundKnown)
    beyond = builder.create<OrOp>(beyond, builder.create<IsNaNOp>(bound));
  return builder.select(beyond, bound, x);
}

static OnnxResults importClip(OnnxNode &node) {
  Value x = node.input(0);
  for (unsigned i : {1u, 2u}) {
    if (!node.hasInput(i))
      continue;
    Value bound = node.input(i);
    if (tensorType(bound).getNumElements() != 1 ||
        tensorType(bound).getElementType() != tensorType(x).getElementType())
      return node.error("a bound is no scalar of the operand's type");
    x = clipAt(node.builder(), x, node.builder().reshape(bound, {}), i == 1,
               static_cast<bool>(node.constant(i)));
  }
  return SmallVector<Value>{x};
}

static OnnxResults importClipByAttributes(OnnxNode &node) {
  Value x = node.input(0);
  for (const char *name : {"min", "max"})
    if (node.hasAttribute(name))
      x = clipAt(node.builder(), x, node.builder().constant(node.real(name, 0), x.getType()),
                 llvm::StringRef(name) == "min", true);
  return SmallVector<Value>{x};
}

static OnnxRegistration byAttributes("Clip", 6, importClipByAttributes);
static OnnxRegistration byInputs("Clip", 11, importClip);

} // namespace trainc::nn
