// SPDX-License-Identifier: Apache-2.0
//
// ONNX Clip. Bounds are attributes below opset 11, optional inputs from there on. NaN stays NaN.
// Gradients are PyTorch's (2.15): known bounds are those of clamp, hardtanh and relu6, and a value
// equal to one passes nothing; bounds that are tensors of the module, computed or learnt share a
// tie evenly.
#include "compiler/onnx/import/compositions/clip.h"

using namespace mlir;

namespace trainc::nn {

Value clipAtKnown(Builder &builder, Value x, Value bound, Bound side) {
  Value beyond = side == Bound::lower ? builder.create<LessOrEqualOp>(x, bound)
                                      : builder.create<GreaterOrEqualOp>(x, bound);
  return builder.select(beyond, bound, x);
}

static Value clipAt(Builder &builder, Value x, Value bound, Bound side) {
  return side == Bound::lower ? builder.create<MaximumOp>(x, bound)
                              : builder.create<MinimumOp>(x, bound);
}

static OnnxResults importClip(OnnxNode &node) {
  Value x = node.input(0);
  for (unsigned i : {1u, 2u}) {
    if (!node.hasInput(i))
      continue;
    Value bound = node.input(i);
    if (tensorType(bound).getNumElements() != 1 ||
        tensorType(bound).getElementType() != tensorType(x).getElementType())
      return node.error("a bound is not a scalar of the operand's type",
                        tensorType(bound).getNumElements() == 1 ? "insert a Cast before the node"
                                                                : "");
    Builder &builder = node.builder();
    bound = builder.broadcastTo(builder.reshape(bound, {}), tensorType(x).getShape());
    bool isKnown = node.constant(i) && node.hasNumbersAsBounds().value_or(true) &&
                   isa<FloatType>(tensorType(x).getElementType());
    x = (isKnown ? clipAtKnown : clipAt)(builder, x, bound, i == 1 ? Bound::lower : Bound::upper);
  }
  return SmallVector<Value>{x};
}

static OnnxResults importClipByAttributes(OnnxNode &node) {
  Value x = node.input(0);
  auto clip = [&](StringRef name, Bound side) {
    if (node.hasAttribute(name))
      x = clipAtKnown(node.builder(), x, node.builder().constant(node.real(name, 0), x.getType()),
                      side);
  };
  clip("min", Bound::lower);
  clip("max", Bound::upper);
  return SmallVector<Value>{x};
}

static OnnxRegistration byAttributes("Clip", 6, importClipByAttributes);
static OnnxRegistration byInputs("Clip", 11, importClip);

} // namespace trainc::nn
