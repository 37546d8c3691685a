// SPDX-License-Identifier: Apache-2.0
//
// nn.training_form: passes/derive_evaluate.cpp resolves it.
#include "dialects/nn/builder.h"

using namespace mlir;

namespace trainc::nn {

LogicalResult TrainingFormOp::buildGradient(Builder &, ArrayRef<Value>,
                                            const llvm::SmallBitVector &,
                                            SmallVectorImpl<Value> &) {
  return emitOpError("is both forms yet: derive-evaluate comes before differentiate");
}

double TrainingFormOp::flops() { return 0; }

FailureOr<Tensor> TrainingFormOp::interpret(ArrayRef<Tensor> operands) { return operands[1]; }

} // namespace trainc::nn
