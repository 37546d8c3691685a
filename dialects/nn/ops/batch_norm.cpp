// SPDX-License-Identifier: Apache-2.0
//
// nn.batch_norm. ONNX's BatchNormalization is a composition, of this or of running statistics.
#include "dialects/nn/normalization.h"

using namespace mlir;

namespace trainc::nn {

static Normalization normalizationOf(Builder &builder, BatchNormOp op) {
  return {builder, op.getX(), batchDimensions(op.getX()), op.getEpsilon().convertToDouble(),
          op.getAllRanks()};
}

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = tensorType(adaptor.getX());
  if (type.getRank() < 2) // batch_norm-c1
    return emitOptionalError(location, "rank is at least 2, found ", type);
  if (adaptor.getEpsilon().isNegative()) // batch_norm-c1
    return emitOptionalError(location, "epsilon is not negative");
  types.push_back(type);
  return success();
}

LogicalResult BatchNormOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign({normalizationOf(builder, *this).gradient(builder, resultGradients[0])});
  return success();
}

double BatchNormOp::flops() { return 6.0 * getX().getType().getNumElements(); }

SmallVector<Value> BatchNormOp::decompose(Builder &builder) {
  return {normalizationOf(builder, *this).result(builder)};
}

} // namespace trainc::nn
