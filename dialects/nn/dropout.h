// SPDX-License-Identifier: Apache-2.0
//
// Dropout: an element is dropped where its number of [0, 2^kDropoutBits) is less than `dropped`.
#pragma once

#include "dialects/nn/builder.h"
#include "runtime/kernels/random.h"

namespace trainc::nn {

constexpr int kDropoutBits = dropout_bits;
constexpr int64_t kAllDropped = int64_t(1) << kDropoutBits;

/// What the elements that are kept are multiplied by.
inline double dropoutFactor(int64_t dropped) { return dropout_factor(dropped); }

/// Which elements are kept, by their numbers.
inline mlir::Value keptElements(Builder &builder, mlir::Value numbers, int64_t dropped) {
  mlir::Value first = builder.constant(static_cast<double>(dropped), numbers.getType());
  return builder.create<GreaterOrEqualOp>(numbers, first);
}

/// What all are multiplied by, of a type.
inline mlir::Value dropoutMask(Builder &builder, mlir::Value keep, int64_t dropped,
                               mlir::RankedTensorType type) {
  mlir::Value factor = builder.constant(dropoutFactor(dropped), type);
  return builder.select(keep, factor, builder.constant(0, type));
}

} // namespace trainc::nn
