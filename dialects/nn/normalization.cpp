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

/// The means of the ranks' tensors of one dimension, and how many ranks there are: they meet once.
static std::pair<SmallVector<Value>, Value> meanOverRanks(Builder &builder, ArrayRef<Value> own) {
  Value x = own.size() == 1 ? own[0] : builder.create<ConcatOp>(own, int64_t(0));
  auto op = builder.op().create<MeanOverRanksOp>(builder.location(), x);
  SmallVector<Value> means;
  int64_t first = 0;
  for (Value each : own) {
    int64_t count = tensorType(each).getNumElements();
    means.push_back(builder.slice(op.getMean(), 0, first, count));
    first += count;
  }
  return {means, op.getRanks()};
}

// The variance is that from the mean of all ranks: the mean of the ranks' squares less the mean's
// would cancel.
Normalization::Normalization(Builder &builder, Value x, ArrayRef<int64_t> dimensions,
                             double epsilon, bool allRanks)
    : dimensions(dimensions), shape(tensorType(x).getShape()) {
  auto overRanks = [&](Value own, StringRef role) {
    if (!allRanks)
      return own;
    auto [means, count] = meanOverRanks(builder, own);
    ranks = count;
    return builder.named(role, means[0]);
  };
  mean = overRanks(builder.reduceMean(x, dimensions, allRanks ? "own_mean" : "mean"), "mean");
  centered = builder.named("centered", builder.sub(x, builder.expand(mean, dimensions, shape)));
  variance = overRanks(builder.reduceMean(builder.mul(centered, centered), dimensions,
                                          allRanks ? "own_variance" : "variance"),
                       "variance");
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
  if (ranks) {
    auto [means, count] = meanOverRanks(builder, {meanOfGradient, meanOfProduct});
    meanOfGradient = means[0];
    meanOfProduct = means[1];
  }
  Value dx =
      builder.sub(builder.sub(dy, builder.expand(meanOfGradient, dimensions, shape)),
                  builder.named("normalized_part",
                                builder.mul(y, builder.expand(meanOfProduct, dimensions, shape))));
  return builder.mul(builder.named("gradient_without_means", dx), factor);
}

} // namespace trainc::nn
