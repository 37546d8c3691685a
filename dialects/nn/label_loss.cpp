// SPDX-License-Identifier: Apache-2.0
//
// Weighted negative log-probabilities of labels.
#include "dialects/nn/label_loss.h"

using namespace mlir;

namespace trainc::nn {

LabelLosses labelLosses(Builder &builder, Value logProbabilities, Value labels,
                        const LabelLossSettings &settings) {
  RankedTensorType type = tensorType(logProbabilities);
  Value mask = builder.create<LabelMaskOp>(type.clone(IntegerType::get(type.getContext(), 1)),
                                           labels, settings.ignored);
  Value zero = builder.constant(0, type);
  auto picked = [&](Value values) {
    return builder.reduceSum(builder.select(mask, values, zero), -1);
  };
  LabelLosses rows{builder.neg(picked(logProbabilities)), nullptr};
  Value weights;
  if (settings.classWeights) {
    weights = builder.broadcast(settings.classWeights, {type.getRank() - 1}, type.getShape());
    rows.weights = builder.named("label_weight", picked(weights));
    rows.losses = builder.mul(rows.losses, rows.weights);
  } else if (settings.ignored) {
    rows.weights = builder.named("label_weight", picked(builder.constant(1, type)));
  }
  if (settings.labelSmoothing > 0) {
    Value of = weights ? builder.mul(logProbabilities, weights) : logProbabilities;
    double classes = static_cast<double>(type.getShape().back());
    Value spread = builder.scale(builder.reduceSum(of, -1), -settings.labelSmoothing / classes);
    if (settings.ignored) {
      auto ignored = static_cast<double>(settings.ignored.getInt());
      Value none = builder.create<EqualOp>(labels, builder.constant(ignored, labels.getType()));
      spread = builder.select(none, builder.constant(0, spread.getType()), spread);
    }
    rows.losses = builder.add(builder.scale(rows.losses, 1 - settings.labelSmoothing),
                              builder.named("smoothing_loss", spread));
  }
  rows.losses = builder.named("row_loss", rows.losses);
  return rows;
}

Value sumOf(Builder &builder, Value elements) {
  return builder.reduceSum(elements,
                           llvm::to_vector(llvm::seq<int64_t>(0, tensorType(elements).getRank())));
}

Value meanOf(Builder &builder, const LabelLosses &rows) {
  Value total = sumOf(builder, rows.losses);
  if (!rows.weights)
    return builder.scale(total,
                         1.0 / static_cast<double>(tensorType(rows.losses).getNumElements()));
  return builder.div(builder.named("total_loss", total),
                     builder.named("total_weight", sumOf(builder, rows.weights)));
}

Value moveLast(Builder &builder, Value x, int64_t axis) {
  return builder.move(x, axis, tensorType(x).getRank() - 1);
}

} // namespace trainc::nn
