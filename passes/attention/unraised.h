// SPDX-License-Identifier: Apache-2.0
//
// What people are told of attention that stays written out.
#pragma once

#include "dialects/nn/nn.h"
#include <string>

namespace trainc {

/// Why the softmax, which raise-attention left, is not part of nn.attention: "its scores go
/// through tanh". Empty where it is not of attention: its scores are not products of two computed
/// tensors, or nothing multiplies by its weights.
std::string whyWrittenOut(nn::SoftmaxOp softmax);

} // namespace trainc
