// SPDX-License-Identifier: Apache-2.0
//
// Frozen weights that are rounded to integers with scales, where the user asks for it.
#pragma once

#include "compiler/onnx/reader.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace trainc {

/// How a weight is stored that `frozenType` rounds: int8 or int4, in blocks of 32 along the last
/// axis, each with a scale in bf16. None where it does not: another type, a vector, or another
/// number of elements along that axis than of whole blocks.
std::optional<FrozenWeight> roundedWeight(const Model &model, const Parameter &parameter,
                                          llvm::StringRef frozenType);

/// The integers, or the scales, of values in f32, piece by piece: those of round_block.
void forEachRounded(llvm::ArrayRef<char> floats, bool toFourBits, bool areScales,
                    llvm::function_ref<void(llvm::ArrayRef<char>)> take);

} // namespace trainc
