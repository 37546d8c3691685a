// SPDX-License-Identifier: Apache-2.0
//
// How far two outputs are from the angle that the labels ask for: 1 - cos for a label of 1, what
// cos is above the margin for one of -1.
#include "dialects/train/loss.h"

using namespace mlir;

namespace trainc::train {

constexpr double kSquareOfNothing = 1e-12; // PyTorch's: rows of zeros have a cosine of 0

static Labels labelsOfRows(RankedTensorType output, const LossSettings &, std::string &problem) {
  int64_t rank = output.getRank();
  if (isa<FloatType>(output.getElementType()) && (rank == 1 || rank == 2))
    return {output.clone(output.getShape().drop_back()), {}, {}};
  problem = "needs outputs of floats, [samples, features] or [features]";
  return {};
}

static LossValue cosineDistance(const LossInput &input) {
  nn::Builder &builder = input.builder;
  auto sumOfProducts = [&](Value a, Value b) { return builder.reduceSum(builder.mul(a, b), {-1}); };
  auto squares = [&](Value x) {
    Value sum = sumOfProducts(x, x);
    return builder.add(sum, builder.constant(kSquareOfNothing, sum.getType()));
  };
  Value product = sumOfProducts(input.output, input.other);
  Value lengths = builder.mul(squares(input.output), squares(input.other));
  Value cosine = builder.div(product, builder.create<nn::SqrtOp>(lengths));
  cosine = builder.named("cosine", cosine);
  Type type = cosine.getType();
  Value zero = builder.constant(0, type), one = builder.constant(1, type);
  Value apart = builder.sub(cosine, builder.constant(input.settings.number("margin"), type));
  apart = builder.select(builder.create<nn::LessOp>(apart, zero), zero, apart);
  Value isAlike = builder.create<nn::EqualOp>(input.labels, one);
  Value isOther = builder.create<nn::EqualOp>(input.labels, builder.constant(-1, type));
  Value distance = builder.select(isOther, apart, zero);
  return {.elements = builder.select(isAlike, builder.sub(one, cosine), distance)};
}

static LossRegistration cosineEmbeddingRegistration({
    .name = "cosine_embedding",
    .description =
        "distance of two outputs by the cosine of their angle; labels are 1 for rows that "
        "are to be alike, -1 for others",
    .settings = {{.name = "input2",
                  .help = "what the output is compared with",
                  .kind = LossSetting::output},
                 {.name = "margin",
                  .help = "the cosine below which rows that are not alike cost nothing",
                  .defaultValue = "0",
                  .least = -1,
                  .most = 1},
                 reductionSetting()},
    .labels = labelsOfRows,
    .build = cosineDistance,
});

} // namespace trainc::train
