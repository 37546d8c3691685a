// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceL1: the sum of absolute values.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceL1(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return builder.reduceSum(builder.create<AbsOp>(x), dimensions);
  });
}

static OnnxRegistration reduceL1 =
    OnnxRegistration("ReduceL1", 1, importReduceL1).mustKnow(1, "axes");

} // namespace trainc::nn
