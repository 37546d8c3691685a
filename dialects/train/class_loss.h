// SPDX-License-Identifier: Apache-2.0
//
// What losses of class scores share: where the classes are, what their labels are, how many are
// right.
#pragma once

#include "dialects/train/loss.h"

namespace trainc::train {

/// `axis`, `class_weights`, `ignore_index` and `reduction`, after those of the loss.
std::vector<LossSetting> classSettings(std::vector<LossSetting> own = {});

/// Integers of the output's shape without the axis of the classes.
Labels classLabels(mlir::RankedTensorType output, const LossSettings &settings,
                   std::string &problem);

/// The output with the classes last.
mlir::Value classesLast(const LossInput &input);

/// From log-probabilities with the classes last.
LossValue lossOfLogProbabilities(const LossInput &input, mlir::Value logProbabilities,
                                 double labelSmoothing);

mlir::IntegerAttr ignoredLabel(const LossInput &input);

/// Accuracy, and of more than five classes whether the label is among the first five.
std::vector<Metric> classMetrics(const LossInput &input);

} // namespace trainc::train
