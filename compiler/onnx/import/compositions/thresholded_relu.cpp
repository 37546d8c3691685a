// SPDX-License-Identifier: Apache-2.0
//
// ONNX ThresholdedRelu: x above alpha, elsewhere zero; NaN stays.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importThresholdedRelu(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Value below =
      builder.create<LessOrEqualOp>(x, builder.constant(node.real("alpha", 1), x.getType()));
  return SmallVector<Value>{builder.select(below, builder.constant(0, x.getType()), x)};
}

static OnnxRegistration thresholdedRelu("ThresholdedRelu", 10, importThresholdedRelu);

} // namespace trainc::nn
