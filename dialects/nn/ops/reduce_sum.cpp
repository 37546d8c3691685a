// SPDX-License-Identifier: Apache-2.0
//
// nn.reduce_sum; ONNX ReduceSum and ReduceMean.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceSum(OnnxNode &node) {
  return importReduction(node, 13, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return builder.reduceSum(x, dimensions);
  });
}

static OnnxResults importReduceMean(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return builder.reduceMean(x, dimensions);
  });
}

LogicalResult ReduceSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  // reduce_sum-c1
  return inferReduction(location, adaptor.getX(), adaptor.getDimensions(), types);
}

LogicalResult ReduceSumOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                         const llvm::SmallBitVector &,
                                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(
      {builder.expand(resultGradients[0], getDimensions(), getX().getType().getShape())});
  return success();
}

double ReduceSumOp::flops() { return getX().getType().getNumElements(); }

FailureOr<Tensor> ReduceSumOp::interpret(ArrayRef<Tensor> operands) {
  return interpretReduction(
      operands[0], getResult().getType(), getDimensions(), 0, 0, [](auto a, auto b) {
        if constexpr (std::is_same_v<decltype(a), int64_t>)
          return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
          return a + b;
      });
}

static OnnxRegistration reduceSum =
    OnnxRegistration("ReduceSum", 1, importReduceSum).mustKnow(1, "axes");
static OnnxRegistration reduceMean =
    OnnxRegistration("ReduceMean", 1, importReduceMean).mustKnow(1, "axes");

} // namespace trainc::nn
