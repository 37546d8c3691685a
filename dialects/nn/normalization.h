// SPDX-License-Identifier: Apache-2.0
//
// Normalisation to mean 0 and variance 1 over some dimensions, and its gradient: layer norm and
// batch norm, of a rank's batch or of those of all ranks.
#pragma once

#include "dialects/nn/builder.h"

namespace trainc::nn {

/// All dimensions of x but its channels, the second.
llvm::SmallVector<int64_t> batchDimensions(mlir::Value x);

struct Normalization {
  mlir::Value mean, variance, centered, rstd; // rstd: 1 / standard deviation; variance: biased
  mlir::Value ranks; // how many these are of, a scalar of f64; null: of this one

  /// Normalises x over `dimensions`, none of them negative.
  Normalization(Builder &builder, mlir::Value x, llvm::ArrayRef<int64_t> dimensions, double epsilon,
                bool allRanks = false);

  mlir::Value result(Builder &builder) const;
  /// The gradient of x, where `dy` is that of the result. It is made of the statistics again: after
  /// decompose both share them.
  mlir::Value gradient(Builder &builder, mlir::Value dy) const;

private:
  llvm::SmallVector<int64_t> dimensions, shape;
};

} // namespace trainc::nn
