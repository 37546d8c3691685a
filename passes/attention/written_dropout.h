// SPDX-License-Identifier: Apache-2.0
//
// Dropout as the reader of models writes it (compiler/onnx/import/compositions/dropout.cpp).
#pragma once

#include "dialects/nn/nn.h"
#include <optional>

namespace trainc {

struct WrittenDropout {
  nn::TrainingFormOp result;
  nn::MulOp product;       // what it is in training
  int64_t stream, dropped; // as nn.attention has them
};

/// The dropout that alone reads `value`; nothing where anything else does.
std::optional<WrittenDropout> writtenDropout(mlir::Value value);

} // namespace trainc
