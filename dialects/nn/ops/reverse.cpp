// SPDX-License-Identifier: Apache-2.0
//
// nn.reverse. ONNX reverses by Slice with negative steps.
#include "dialects/nn/builder.h"

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

} // namespace trainc::nn
