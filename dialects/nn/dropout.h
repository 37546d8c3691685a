// SPDX-License-Identifier: Apache-2.0
//
// Dropout: an element is dropped where its number of [0, 2^kDropoutBits) is less than `dropped`.
#pragma once

#include "runtime/kernels/random.h"

namespace trainc::nn {

constexpr int kDropoutBits = dropout_bits;
constexpr int64_t kAllDropped = int64_t(1) << kDropoutBits;

/// What the elements that are kept are multiplied by.
inline double dropoutFactor(int64_t dropped) { return dropout_factor(dropped); }

} // namespace trainc::nn
