// SPDX-License-Identifier: Apache-2.0
//
// ONNX Sum, Mean, Max and Min of any number of operands, which broadcast. Max and Min of equal
// operands share the gradient evenly, unless PyTorch's clamp became one of them.
#include "compiler/onnx/import/compositions/clip.h"

using namespace mlir;

namespace trainc::nn {

template <typename Op> static OnnxResults importVariadic(OnnxNode &node) {
  Builder &builder = node.builder();
  SmallVector<Value> operands;
  SmallVector<int64_t> shape;
  for (unsigned i = 0; i < node.numInputs(); ++i) {
    operands.push_back(node.input(i));
    auto joined = broadcastShapes(shape, tensorType(operands[i]).getShape());
    if (!joined)
      return node.error("operands do not broadcast");
    if (tensorType(operands[i]).getElementType() != tensorType(operands[0]).getElementType())
      return node.error("operands have different element types", "insert a Cast before the node");
    shape = *joined;
  }
  if (failed(builder.unify(operands)))
    return failure();
  Value result = operands[0];
  for (Value next : ArrayRef(operands).drop_front())
    result = builder.create<Op>(result, next);
  return SmallVector<Value>{result};
}

static OnnxResults importMean(OnnxNode &node) {
  OnnxResults sum = importVariadic<AddOp>(node);
  if (succeeded(sum))
    sum->front() = node.builder().scale(sum->front(), 1.0 / node.numInputs());
  return sum;
}

template <typename Op, Bound side> static OnnxResults importBound(OnnxNode &node) {
  bool isClamp =
      node.numInputs() == 2 && node.hasNumbersAsBounds().value_or(false) &&
      tensorType(node.input(1)).getNumElements() == 1 &&
      tensorType(node.input(1)).getElementType() == tensorType(node.input(0)).getElementType() &&
      isa<FloatType>(tensorType(node.input(0)).getElementType());
  if (!isClamp)
    return importVariadic<Op>(node);
  Builder &builder = node.builder();
  Value x = node.input(0);
  Value bound = builder.broadcastTo(builder.reshape(node.input(1), {}), tensorType(x).getShape());
  return SmallVector<Value>{clipAtKnown(builder, x, bound, side)};
}

static OnnxRegistration sum("Sum", 6, importVariadic<AddOp>);
static OnnxRegistration mean("Mean", 6, importMean);
static OnnxRegistration max("Max", 6, importBound<MaximumOp, Bound::lower>);
static OnnxRegistration min("Min", 6, importBound<MinimumOp, Bound::upper>);

} // namespace trainc::nn
