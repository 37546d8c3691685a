// SPDX-License-Identifier: Apache-2.0
//
// nn.constant. Constants of ONNX graphs are the reader's affair.
#include "dialects/nn/nn.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, std::optional<Location>, Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getValue().getType());
  return success();
}

double ConstantOp::flops() { return 0; }

FailureOr<Tensor> ConstantOp::interpret(ArrayRef<Tensor>) { return Tensor::of(getValue()); }

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

} // namespace trainc::nn
