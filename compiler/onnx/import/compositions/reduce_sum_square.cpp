// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceSumSquare: the sum of squares.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importReduceSumSquare(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    return builder.reduceSum(builder.mul(x, x), dimensions);
  });
}

static OnnxRegistration reduceSumSquare =
    OnnxRegistration("ReduceSumSquare", 1, importReduceSumSquare).mustKnow(1, "axes");

} // namespace trainc::nn
