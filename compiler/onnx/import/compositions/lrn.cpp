// SPDX-License-Identifier: Apache-2.0
//
// ONNX LRN: x / (bias + alpha / size * sum)^beta, the sum of squares over `size` channels around
// each.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importLrn(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  int64_t size = node.integer("size", 0);
  if (type.getRank() < 2)
    return node.error("expects an operand [N, C, ...]");
  int64_t channels = type.getDimSize(1);
  if (size < 1 || size > 2 * channels + 1)
    return node.error("its size is " + llvm::Twine(size) + ", expected 1 to " +
                      llvm::Twine(2 * channels + 1) + " of " + llvm::Twine(channels) + " channels");
  SmallVector<int64_t> indices;
  SmallVector<double> weights;
  for (int64_t channel = 0; channel < channels; ++channel)
    for (int64_t i = 0; i < size; ++i) {
      int64_t other = channel - (size - 1) / 2 + i;
      indices.push_back(std::clamp<int64_t>(other, 0, channels - 1));
      weights.push_back(other >= 0 && other < channels ? 1 : 0);
    }
  Value squares = builder.named("square", builder.mul(x, x));
  Value sum = builder.named("sum_of_squares",
                            builder.create<ResampleOp>(squares, 1, size, indices, weights));
  double alpha = node.real("alpha", 1e-4), bias = node.real("bias", 1);
  Value base = builder.add(builder.scale(sum, alpha / static_cast<double>(size)),
                           builder.constant(bias, type));
  Value power = builder.create<PowOp>(base, builder.constant(node.real("beta", 0.75), type));
  return SmallVector<Value>{builder.div(x, builder.named("divisor", power))};
}

static OnnxRegistration lrn("LRN", 1, importLrn);

} // namespace trainc::nn
