// SPDX-License-Identifier: Apache-2.0
//
// The bridge from nn's view operations to the index arithmetic of
// planning/strided_view.h, shared by fuse and lower-to-kernels.
#pragma once

#include "dialects/nn/views.h"
#include "passes/planning/strided_view.h"

namespace trainc {

planning::Sizes sizesOf(mlir::Value value);

/// Map of a view's operand from the map of its result; nothing where a reshape
/// needs a split of the iteration space, or cannot be had at all.
std::optional<planning::IndexMap> operandMap(mlir::Operation *view,
                                             const planning::IndexMap &result,
                                             std::optional<planning::Split> &split);

bool isSplatConstant(mlir::Operation *op);

/// Applies a split to iteration sizes: one dimension becomes two.
void applySplit(planning::Sizes &space, const planning::Split &split);

} // namespace trainc
