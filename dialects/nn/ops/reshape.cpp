// SPDX-License-Identifier: Apache-2.0
//
// nn.reshape; ONNX Reshape.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <utility>

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReshape(OnnxNode &node) {
  auto asked = node.integers(1);
  Value x = node.input(0);
  auto type = tensorType(x);
  bool zeroIsZero = node.integer("allowzero", 0) != 0;
  int64_t open = -1;
  for (auto [i, size] : llvm::enumerate(*asked)) {
    if (size == 0 && !zeroIsZero) {
      if (static_cast<int64_t>(i) >= type.getRank())
        return node.error("size 0 of dimension " + llvm::Twine(i) +
                          " copies a dimension that the input does not have");
      size = type.getDimSize(i);
    }
    if (size == -1 && open >= 0)
      return node.error("more than one size is -1");
    if (size == -1) {
      open = static_cast<int64_t>(i);
      size = 1; // for the product of the others
    }
  }
  auto count = countElements(node, *asked);
  if (failed(count))
    return failure();
  if (open >= 0 && *count != 0)
    (*asked)[open] = type.getNumElements() / *count;
  if (computeProduct(*asked) != type.getNumElements())
    return node.error("cannot reshape " + llvm::Twine(type.getNumElements()) + " elements to " +
                      llvm::Twine(computeProduct(*asked)));
  return SmallVector<Value>{node.builder().reshape(x, *asked)};
}

LogicalResult ReshapeOp::verify() {
  auto from = getX().getType(), to = getResult().getType();
  if (from.getNumElements() != to.getNumElements() ||
      from.getElementType() != to.getElementType()) // reshape-c1
    return emitOpError("element counts and types agree, found ") << from << " and " << to;
  return success();
}

LogicalResult ReshapeOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign({builder.reshape(resultGradients[0], getX().getType().getShape())});
  return success();
}

double ReshapeOp::flops() { return 0; }

FailureOr<Tensor> ReshapeOp::interpret(ArrayRef<Tensor> operands) {
  return operands[0].withShape(getResult().getType().getShape());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  auto type = getResult().getType();
  if (getX().getType() == type)
    return getX();
  if (auto dense = llvm::dyn_cast_if_present<DenseElementsAttr>(adaptor.getX()))
    return dense.reshape(type); // the same bytes, not a copy
  auto inner = getX().getDefiningOp<ReshapeOp>();
  if (!inner)
    return {};
  getXMutable().assign(inner.getX());
  return getResult();
}

static OnnxRegistration reshape =
    OnnxRegistration("Reshape", 1, importReshape).mustKnow(1, "shape");

} // namespace trainc::nn
