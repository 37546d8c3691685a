// SPDX-License-Identifier: Apache-2.0
//
// nn.mean_over_ranks. It comes from batch norms over all ranks; no ONNX operator is it.
#include "dialects/nn/builder.h"
#include "dialects/nn/library_step.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult MeanOverRanksOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.append({adaptor.getX().getType(), RankedTensorType::get({}, Float64Type::get(context))});
  return success();
}

LogicalResult MeanOverRanksOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                             const llvm::SmallBitVector &,
                                             SmallVectorImpl<Value> &operandGradients) {
  // The number of ranks follows from no operand.
  operandGradients.assign(
      {resultGradients[0] ? builder.create<MeanOverRanksOp>(resultGradients[0]) : Value()});
  return success();
}

double MeanOverRanksOp::flops() { return getX().getType().getNumElements(); }

// The mean of one rank, which runs no program.
FailureOr<SmallVector<Tensor>> MeanOverRanksOp::interpretResults(ArrayRef<Tensor> operands) {
  return SmallVector<Tensor>{operands[0], Tensor::ofReals(getRanks().getType(), {1.0})};
}

SmallVector<Replacement> MeanOverRanksOp::lowerToStep(StepBuilder &builder) {
  auto call = builder.create<kernel::CallOp>(getResultTypes(), "mean_over_ranks", "mean_over_ranks",
                                             ArrayRef<int64_t>{getX().getType().getNumElements()},
                                             builder.contiguous(getX()));
  call.setOrdered(true);
  call.setFlops(APFloat(flops()));
  return {{getMean(), call.getOuts()[0]}, {getRanks(), call.getOuts()[1]}};
}

} // namespace trainc::nn
