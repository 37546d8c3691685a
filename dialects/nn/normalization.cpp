// SPDX-License-Identifier: Apache-2.0
//
// Normalisation over some dimensions.
#include "dialects/nn/normalization.h"

using namespace mlir;

namespace trainc::nn {

SmallVector<int64_t> batchDimensions(Value x) {
  SmallVector<int64_t> dimensions{0};
  llvm::append_range(dimensions, llvm::seq<int64_t>(2, tensorType(x).getRank()));
  return dimensions;
}

Normalization::Normalization(Builder &builder, Value x, ArrayRef<int64_t> dimensions,
                             double epsilon)
    : dimensions(dimensions), shape(tensorType(x).getShape()) {
  mean = builder.reduceMean(x, dimensions, "mean");
  centered = builder.named("centered", builder.sub(x, builder.expand(mean, dimensions, shape)));
  variance = builder.reduceMean(builder.mul(centered, centered), dimensions, "variance");
  rstd = builder.named("rstd", builder.create<RsqrtOp>(builder.add(
                                   variance, builder.constant(epsilon, variance.getType()))));
}

Value Normalization::result(Builder &builder) const {
  return builder.mul(centered, builder.expand(rstd, dimensions, shape));
}

Value Normalization::gradient(Builder &builder, Value dy) const {
  Value factor = builder.expand(rstd, dimensions, shape);
  Value y = builder.named("normalized", builder.mul(centered, factor));
  Value meanOfGradient = builder.reduceMean(dy, dimensions, "gradient_mean");
  Value meanOfProduct =
      builder.reduceMean(builder.mul(dy, y), dimensions, "gradient_times_normalized_mean");
  Value dx =
      builder.sub(builder.sub(dy, builder.expand(meanOfGradient, dimensions, shape)),
                  builder.named("normalized_part",
                                builder.mul(y, builder.expand(meanOfProduct, dimensions, shape))));
  return builder.mul(builder.named("gradient_without_means", dx), factor);
}

} // namespace trainc::nn
