// SPDX-License-Identifier: Apache-2.0
//
// ONNX RMSNormalization: the dimensions from `axis` on, over the root of their mean square. What is
// computed has the operand's type, or f64 sums, and never a smaller type that `stash_type` names.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importRmsNormalization(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0), scale = node.input(1);
  RankedTensorType type = tensorType(x);
  FailureOr<int64_t> axis = axisOf(node, type.getRank(), -1);
  if (failed(axis))
    return failure();
  double epsilon = node.real("epsilon", 1e-5);
  if (!(epsilon >= 0))
    return node.error("epsilon is negative");
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  auto joined = broadcastShapes(tensorType(scale).getShape(), type.getShape());
  if (!joined || ArrayRef(*joined) != type.getShape() ||
      tensorType(scale).getElementType() != type.getElementType())
    return node.error("scale does not fit the input");
  auto dimensions = llvm::to_vector(llvm::seq(*axis, type.getRank()));
  Value square = builder.reduceMean(builder.mul(x, x), dimensions, "mean_square");
  Value shifted = builder.add(square, builder.constant(epsilon, square.getType()));
  Value root = builder.named("reciprocal_root", builder.create<RsqrtOp>(shifted));
  Value normalized = builder.mul(x, builder.expand(root, dimensions, type.getShape()));
  return SmallVector<Value>{builder.mul(builder.named("normalized", normalized),
                                        builder.broadcastTo(scale, type.getShape()))};
}

static OnnxWeight weightsOfRmsNormalization(unsigned input, ArrayRef<int64_t>) {
  return input == 1 ? OnnxWeight::scale : OnnxWeight::none;
}

static OnnxRegistration rmsNormalization("RMSNormalization", 23, importRmsNormalization,
                                         weightsOfRmsNormalization);

} // namespace trainc::nn
