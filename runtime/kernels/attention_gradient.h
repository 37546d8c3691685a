// SPDX-License-Identifier: Apache-2.0
//
// nn.attention_gradient (dialects/nn/ops/attention.td). Only runtime/cpu has it.
#pragma once

#include "runtime/kernels/attention.h"

#include <algorithm>

namespace trainc {

template <typename T> struct attention_gradients {
  const T *dresult;
  T *dq, *dk, *dv;
  attention_sum<T> *dmask; // null where nobody asks for it
  char *scratch;           // of attention_scratch_bytes where somebody does
};

struct attention_gradient_layouts {
  matrix_layout dresult, dq, dk, dv;
};

// The order of every sum follows from the shape alone.
template <typename T>
void compute_attention_gradient(const attention_shape &shape,
                                const attention_gradient_layouts &layouts,
                                const attention_tensors<T> &tensors,
                                const attention_gradients<T> &gradients);

// `others` are masks, dq, dk, dv and, where it is wanted, dmask with the scratch.
template <typename T, typename... Others>
void attention_gradient(const attention_sizes &sizes, const attention_batch &batch, double scale,
                        const matrix_layout &q, const matrix_layout &k, const matrix_layout &v,
                        const matrix_layout &result, const matrix_layout &dresult,
                        const matrix_layout &dq, const matrix_layout &dk, const matrix_layout &dv,
                        const attention_masks &masks, const T *of_q, const T *of_k, const T *of_v,
                        const T *of_result, const attention_sum<T> *of_log_sum, const T *of_dresult,
                        Others... others) {
  constexpr bool of_masks = (std::is_same_v<Others, char *> || ...);
  constexpr int count = sizeof...(Others) - (of_masks ? 5 : 3);
  using sum = attention_sum<T>;
  const pointer_list<Others...> rest(others...);
  attention_tensors<T> tensors = {
      of_q, of_k, of_v, {}, const_cast<T *>(of_result), const_cast<sum *>(of_log_sum)};
  for (int i = 0; i < count; ++i)
    tensors.masks[i] = static_cast<const sum *>(rest.of[i]);
  attention_gradients<T> gradients = {of_dresult, nullptr, nullptr, nullptr, nullptr, nullptr};
  gradients.dq = static_cast<T *>(rest.of[count]);
  gradients.dk = static_cast<T *>(rest.of[count + 1]);
  gradients.dv = static_cast<T *>(rest.of[count + 2]);
  if constexpr (of_masks) {
    gradients.dmask = static_cast<sum *>(rest.of[count + 3]);
    gradients.scratch = static_cast<char *>(rest.of[count + 4]);
  }
  compute_attention_gradient<T>({sizes, batch, scale, q, k, v, result, masks, count},
                                {dresult, dq, dk, dv}, tensors, gradients);
}

// ---- for the compiler and the implementation

// Threads share the heads of keys. A mask's gradient is the sum of some heads': these are cut into
// parts, so that there is work for several threads, with a sum each.
inline int64_t attention_mask_parts(int64_t kept, int64_t added) {
  constexpr int64_t enough = 16;
  return std::clamp<int64_t>((enough + kept - 1) / kept, 1, std::max<int64_t>(added, 1));
}
// `kept` heads of keys that the gradient tells apart, of `mask_bytes`; `added` is how many make
// each.
inline int64_t attention_scratch_bytes(int64_t kept, int64_t added, int64_t mask_bytes) {
  const int64_t parts = attention_mask_parts(kept, added);
  return parts == 1 ? 64 : parts * mask_bytes;
}

} // namespace trainc
