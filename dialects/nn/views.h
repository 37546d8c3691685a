// SPDX-License-Identifier: Apache-2.0
//
// Operations that compute nothing: their results are operands' elements at other indices.
#pragma once

#include "dialects/nn/nn.h"

namespace trainc {

/// Operations that only move indices: reshape, transpose, slice, reverse, broadcast.
bool isView(mlir::Operation *op);

/// What the elements of `value` are in before it is given other shapes.
mlir::Value withoutReshapes(mlir::Value value);

} // namespace trainc
