// SPDX-License-Identifier: Apache-2.0
//
// Masks of attention as models write them: what is added to scores or put in their place, in the
// scores' shape.
#pragma once

#include "dialects/nn/builder.h"
#include <optional>

namespace trainc {

/// `value` with size 1 along the dimensions that it is the same for, computed anew where views and
/// pointwise operations hide them; `value` itself where there are none.
mlir::Value withoutRepetition(nn::Builder &builder, mlir::Value value);

/// Elements of that.
int64_t elementsWithoutRepetition(mlir::Value value);

/// Keys that a query does not see: those after i + reach of query i.
struct HiddenKeys {
  int64_t reach;
  double score; // in their place, or added to theirs
};

/// What a mask hides that is added to scores, where it is 0 otherwise.
std::optional<HiddenKeys> hiddenBy(mlir::Value mask);
/// The reach where a condition holds for seen keys alone, or for hidden ones alone.
std::optional<int64_t> reachOf(mlir::Value condition, bool holdsForSeen);

} // namespace trainc
