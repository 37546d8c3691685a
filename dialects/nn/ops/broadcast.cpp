// SPDX-License-Identifier: Apache-2.0
//
// nn.broadcast; ONNX Expand.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importExpand(OnnxNode &node) {
  auto shape = node.integers(1);
  Value x = node.input(0);
  auto joined = broadcastShapes(tensorType(x).getShape(), *shape);
  if (!joined)
    return node.error("the input does not broadcast to the shape asked for");
  if (failed(countElements(node, *joined)))
    return failure();
  return SmallVector<Value>{node.builder().broadcastTo(x, *joined)};
}

LogicalResult BroadcastOp::verify() {
  auto from = getX().getType(), to = getResult().getType();
  ArrayRef<int64_t> dimensions = getDimensions();
  bool increasing = static_cast<int64_t>(dimensions.size()) == from.getRank();
  for (size_t i = 0; increasing && i < dimensions.size(); ++i)
    increasing = dimensions[i] < to.getRank() && dimensions[i] > (i ? dimensions[i - 1] : -1);
  if (!increasing) // broadcast-c1
    return emitOpError("expects ") << from.getRank() << " increasing dimensions below "
                                   << to.getRank() << ", found [" << dimensions << "]";
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (from.getDimSize(i) != 1 && from.getDimSize(i) != to.getDimSize(dimensions[i]))
      return emitOpError("size ") // broadcast-c2
             << from.getDimSize(i) << " of dimension " << i << " is neither 1 nor "
             << to.getDimSize(dimensions[i]);
  if (from.getElementType() != to.getElementType()) // broadcast-c3
    return emitOpError("changes the element type from ")
           << from.getElementType() << " to " << to.getElementType();
  return success();
}

LogicalResult BroadcastOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  auto from = getX().getType(), to = getResult().getType();
  SmallVector<int64_t> reduced;
  for (int64_t dimension = 0; dimension < to.getRank(); ++dimension) {
    auto source = llvm::find(getDimensions(), dimension) - getDimensions().begin();
    bool repeated =
        source == from.getRank() || (from.getDimSize(source) == 1 && to.getDimSize(dimension) != 1);
    if (repeated)
      reduced.push_back(dimension);
  }
  Value sum = builder.reduceSum(resultGradients[0], reduced);
  operandGradients.assign({builder.reshape(sum, from.getShape())});
  return success();
}

double BroadcastOp::flops() { return 0; }

FailureOr<Tensor> BroadcastOp::interpret(ArrayRef<Tensor> operands) {
  auto from = getX().getType(), to = getResult().getType();
  SmallVector<int64_t> own = computeStrides(from.getShape()), strides(to.getRank(), 0);
  for (auto [i, dimension] : llvm::enumerate(getDimensions()))
    strides[dimension] = from.getDimSize(i) == 1 ? 0 : own[i];
  return operands[0].moved(to.getShape(), 0, strides);
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  auto type = getResult().getType();
  if (getX().getType() == type)
    return getX();
  if (auto splat = llvm::dyn_cast_if_present<SplatElementsAttr>(adaptor.getX()))
    return splat.resizeSplat(type);
  auto inner = getX().getDefiningOp<BroadcastOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> dimensions;
  for (int64_t dimension : inner.getDimensions())
    dimensions.push_back(getDimensions()[dimension]);
  setDimensions(dimensions);
  getXMutable().assign(inner.getX());
  return getResult();
}

static OnnxRegistration expand = OnnxRegistration("Expand", 8, importExpand).mustKnow(1, "shape");

} // namespace trainc::nn
