// SPDX-License-Identifier: Apache-2.0
//
// Huber's function of the differences between output and labels.
#include "dialects/train/robust_error.h"

using namespace mlir;

namespace trainc::train {

Value robustError(const LossInput &input, double bound) {
  nn::Builder &builder = input.builder;
  Value difference = builder.sub(input.output, input.labels);
  Value size = builder.named("absolute_error", builder.create<nn::AbsOp>(difference));
  Value limit = builder.constant(bound, size.getType());
  Value isSmall = builder.create<nn::LessOp>(size, limit);
  Value square = builder.scale(builder.mul(difference, difference), 0.5);
  Value straight =
      builder.scale(builder.sub(size, builder.constant(bound / 2, size.getType())), bound);
  return builder.select(isSmall, square, straight);
}

} // namespace trainc::train
