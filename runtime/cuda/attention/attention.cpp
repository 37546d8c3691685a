// SPDX-License-Identifier: Apache-2.0
//
// nn.attention and its gradient on a GPU: which kernels compute them.
#include "runtime/cuda/attention/forward.h"
#include "runtime/cuda/attention/gradient.h"

namespace trainc {

template <typename T>
void compute_attention(const attention_shape &shape, bool masked_to_zero,
                       const attention_tensors<T> &tensors) {
  if constexpr (is_narrow_v<T>)
    if (attention_in_warps(shape, masked_to_zero, tensors))
      return;
  attention_on_tiles(shape, masked_to_zero, tensors);
}

template <typename T> static void find_gradient(const attention_gradient_call<T> &call) {
  if constexpr (is_narrow_v<T>)
    if (gradient_in_warps(call))
      return;
  gradient_on_tiles(call);
}

template <typename T>
void compute_attention_gradient(const attention_shape &shape,
                                const attention_gradient_layouts &layouts,
                                const attention_tensors<T> &tensors,
                                const attention_gradients<T> &gradients) {
  const attention_gradient_call<T> call = {shape, layouts, tensors, gradients};
  means_of_slopes(call);
  find_gradient(call);
  if (gradients.dmask != nullptr)
    mask_gradient_on_tiles(call);
}

#define ATTENTION_OF(T)                                                                            \
  template void compute_attention(const attention_shape &, bool, const attention_tensors<T> &);    \
  template void compute_attention_gradient(                                                        \
      const attention_shape &, const attention_gradient_layouts &, const attention_tensors<T> &,   \
      const attention_gradients<T> &);
ATTENTION_OF(float)
ATTENTION_OF(double)
ATTENTION_OF(bfloat16)
ATTENTION_OF(float16)

} // namespace trainc
