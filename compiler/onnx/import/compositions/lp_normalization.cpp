// SPDX-License-Identifier: Apache-2.0
//
// ONNX LpNormalization: x divided by its L1 or L2 norm along an axis; zeros stay zeros.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importLpNormalization(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  FailureOr<int64_t> axis = axisOf(node, type.getRank(), -1);
  int64_t p = node.integer("p", 2);
  if (failed(axis))
    return failure();
  if (p != 1 && p != 2)
    return node.error("p is " + llvm::Twine(p) + ", expected 1 or 2");
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  Value norm =
      p == 2 ? buildNorm(builder, x, *axis) : builder.reduceSum(builder.create<AbsOp>(x), *axis);
  // ONNX 1.21 says so. The gradient there is zero: it has no direction.
  Value isZero = builder.create<EqualOp>(norm, builder.constant(0, norm.getType()));
  norm = builder.named("norm",
                       builder.select(isZero, builder.constant(INFINITY, norm.getType()), norm));
  return SmallVector<Value>{builder.div(x, builder.expand(norm, *axis, type.getShape()))};
}

static OnnxRegistration lpNormalization("LpNormalization", 1, importLpNormalization);

} // namespace trainc::nn
