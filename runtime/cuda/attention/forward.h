// SPDX-License-Identifier: Apache-2.0
//
// Attention, one launch: on tiles, of any type and any size of a head, or faster in warps.
#pragma once

#include "runtime/kernels/attention.h"

namespace trainc {

template <typename T>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<T> &tensors);

// Of bf16 and f16, unless heads are too large: whether they were not.
template <typename T>
bool attention_in_warps(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<T> &tensors);

} // namespace trainc
