// SPDX-License-Identifier: Apache-2.0
//
// Errors that grow with the square where they are small, and straight on from there.
#pragma once

#include "dialects/train/loss.h"

namespace trainc::train {

/// For each element d = output - label: d * d / 2 where |d| < bound, else bound * (|d| - bound /
/// 2), which goes on with the same slope (Huber, "Robust Estimation of a Location Parameter",
/// 1964).
mlir::Value robustError(const LossInput &input, double bound);

} // namespace trainc::train
