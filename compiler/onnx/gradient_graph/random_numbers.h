// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialects/nn/builder.h"

namespace trainc {

/// The numbers of nn.random_bits by arithmetic of 64-bit integers, with the same bits.
mlir::Value randomNumbers(nn::Builder &builder, nn::RandomBitsOp op);

} // namespace trainc
