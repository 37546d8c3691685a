// SPDX-License-Identifier: Apache-2.0
//
// Attention on tiles, of any type and any size of a head: one launch.
#pragma once

#include "runtime/kernels/attention.h"

namespace trainc {

template <typename T>
void attention_on_tiles(const attention_shape &shape, bool masked_to_zero,
                        const attention_tensors<T> &tensors);

} // namespace trainc
