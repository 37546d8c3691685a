// SPDX-License-Identifier: Apache-2.0
//
// What losses of class scores have in common, those that a model's file names and those that the
// recipe does: of each label the weighted negative log-probability of its class.
#pragma once

#include "dialects/nn/builder.h"

namespace trainc::nn {

struct LabelLossSettings {
  mlir::IntegerAttr ignored; // of 64 bits: such a label counts nothing; null: every label counts
  mlir::Value classWeights;  // [classes]; null: all 1
  double labelSmoothing = 0; // the share of the target that is spread evenly over the classes
};

/// All in the labels' shape.
struct LabelLosses {
  mlir::Value losses;  // 0 where the label is ignored
  mlir::Value weights; // what each counts in their weighed mean; null where that is always 1
};

/// The losses for log-probabilities with the classes last. The formula is that of PyTorch's
/// `torch.nn.functional.cross_entropy` with class indices, smoothed labels weighed class by class.
LabelLosses labelLosses(Builder &builder, mlir::Value logProbabilities, mlir::Value labels,
                        const LabelLossSettings &settings);

/// Their sum over that of the weights; NaN where nothing counts.
mlir::Value meanOf(Builder &builder, const LabelLosses &rows);
mlir::Value sumOf(Builder &builder, mlir::Value elements);

/// The dimension `axis`, which holds the classes, after all others.
mlir::Value moveLast(Builder &builder, mlir::Value x, int64_t axis);

} // namespace trainc::nn
