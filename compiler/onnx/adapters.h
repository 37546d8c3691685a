// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters beside frozen weights: `--lora`.
#pragma once

#include "compiler/onnx/reader.h"

namespace trainc {

/// Puts the recipe's adapters beside the products of the model's weights: arguments and operations
/// of @model, parameters with their initial values. Every problem goes to `report`.
mlir::LogicalResult addAdapters(Model &model, const Recipe &recipe, Report &report);

} // namespace trainc
