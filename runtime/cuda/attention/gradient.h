// SPDX-License-Identifier: Apache-2.0
//
// The launches of attention's gradient: one for the means of each row's slopes, which the scratch
// then holds, one for dq, one for dk and dv, and one for a mask's gradient where somebody asks for
// it. Each computes the scores that it needs once more, so that each number has one writer.
#pragma once

#include "runtime/kernels/attention_gradient.h"

namespace trainc {

template <typename T> struct attention_gradient_call {
  const attention_shape &shape;
  const attention_gradient_layouts &layouts;
  const attention_tensors<T> &tensors;
  const attention_gradients<T> &gradients;
};

// What the scratch has of each query.
template <typename S> struct row_numbers {
  S mean;    // of the slopes, by the weights
  S inverse; // what weights are multiplied by: 1, but where the log_sum is rounded off
};

template <typename T> void means_of_slopes(const attention_gradient_call<T> &call);

// dq, dk and dv: on tiles, of any type and any size of a head, or faster in warps, of bf16 and f16,
// unless heads are too large: whether they were not.
template <typename T> void gradient_on_tiles(const attention_gradient_call<T> &call);
template <typename T> bool gradient_in_warps(const attention_gradient_call<T> &call);
template <typename T> void mask_gradient_on_tiles(const attention_gradient_call<T> &call);

} // namespace trainc
