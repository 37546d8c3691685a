// SPDX-License-Identifier: Apache-2.0
//
// The moments that Adam (Kingma and Ba 2015) and its descendants share.
#pragma once

#include "dialects/train/optimizer.h"

namespace trainc::train {

/// New moments and what follows from them, with PyTorch's arithmetic.
struct AdamMoments {
  mlir::Value mean, square; // the states exp_avg and exp_avg_sq
  mlir::Value denominator;  // the root of the corrected square, plus eps
  mlir::Value correction1;  // f64 scalar: what the mean is to be divided by
};

/// Moments of `gradient` after the step; reads the hyperparameters beta1, beta2 and eps and the
/// first two states.
AdamMoments adamMoments(Update &update, mlir::Value gradient);

/// The parameter after decoupled weight decay, where it applies to the run.
mlir::Value decayedParameter(Update &update);
/// Adam's step from `parameter`, of a run whose first two states are its own.
UpdateResult adamUpdate(Update &update, mlir::Value parameter, mlir::Value gradient);
/// AdamW's update of a run whose first two states are its own.
UpdateResult adamwUpdate(Update &update);

} // namespace trainc::train
