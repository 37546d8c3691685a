// SPDX-License-Identifier: Apache-2.0
//
// ONNX MeanVarianceNormalization: x less its mean, divided by its standard deviation and a little;
// the gradient of that of equal elements is zero.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importMeanVarianceNormalization(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  RankedTensorType type = tensorType(x);
  int64_t rank = type.getRank();
  if (!isa<FloatType>(type.getElementType()))
    return node.error("its operand is not of a float type", "insert a Cast before the node");
  llvm::SmallBitVector reduced(rank);
  for (int64_t axis : node.integers("axes").value_or(SmallVector<int64_t>{0, 2, 3})) {
    FailureOr<int64_t> dimension = dimensionOf(node, axis, rank);
    if (failed(dimension))
      return failure();
    reduced.set(*dimension);
  }
  SmallVector<int64_t> dimensions(reduced.set_bits());
  auto spread = [&](Value value) { return builder.expand(value, dimensions, type.getShape()); };
  Value mean = builder.reduceMean(x, dimensions, "mean");
  Value centered = builder.named("centered", builder.sub(x, spread(mean)));
  Value variance = builder.reduceMean(builder.mul(centered, centered), dimensions, "variance");
  Value deviation = buildRootOfSquares(builder, variance);
  deviation = builder.named("deviation",
                            builder.add(deviation, builder.constant(1e-9, deviation.getType())));
  return SmallVector<Value>{builder.div(centered, spread(deviation))};
}

static OnnxRegistration meanVarianceNormalization("MeanVarianceNormalization", 9,
                                                  importMeanVarianceNormalization);

} // namespace trainc::nn
