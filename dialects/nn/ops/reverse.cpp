// SPDX-License-Identifier: Apache-2.0
//
// nn.reverse. ONNX reverses by Slice with negative steps.
#include "dialects/nn/builder.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult ReverseOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  llvm::SmallBitVector seen(type.getRank());
  for (int64_t dimension : adaptor.getDimensions()) {
    if (dimension < 0 || dimension >= type.getRank() || seen[dimension]) // reverse-c1
      return emitOptionalError(location, "dimension ", dimension,
                               " is repeated or out of range for rank ", type.getRank());
    seen.set(dimension);
  }
  types.push_back(type);
  return success();
}

LogicalResult ReverseOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign({builder.create<ReverseOp>(resultGradients[0], getDimensions())});
  return success();
}

double ReverseOp::flops() { return 0; }

FailureOr<Tensor> ReverseOp::interpret(ArrayRef<Tensor> operands) {
  ArrayRef<int64_t> shape = getX().getType().getShape();
  SmallVector<int64_t> strides = computeStrides(shape);
  int64_t offset = 0;
  for (int64_t dimension : getDimensions()) {
    offset += (shape[dimension] - 1) * strides[dimension];
    strides[dimension] = -strides[dimension];
  }
  return operands[0].moved(shape, offset, strides);
}

} // namespace trainc::nn
