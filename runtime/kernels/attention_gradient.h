// SPDX-License-Identifier: Apache-2.0
//
// nn.attention_gradient (dialects/nn/ops/attention.td).
#pragma once

#include "runtime/kernels/attention.h"
#include "runtime/kernels/bounds.h"
#include "runtime/kernels/inline.h"

#include <limits>

namespace trainc {

template <typename T> struct attention_gradients {
  const T *dresult;
  T *dq, *dk, *dv;
  attention_sum<T> *dmask; // null where nobody asks for it
  char *scratch; // of attention_split::scratch_bytes, at least two numbers for each query of a head
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

// `others` are masks, the key of a dropout, dq, dk, dv, dmask where it is wanted, and the scratch.
template <typename T, typename... Others>
void attention_gradient(const attention_sizes &sizes, const attention_batch &batch,
                        const attention_dropout &dropout, double scale, const matrix_layout &q,
                        const matrix_layout &k, const matrix_layout &v, const matrix_layout &result,
                        const matrix_layout &dresult, const matrix_layout &dq,
                        const matrix_layout &dk, const matrix_layout &dv,
                        const attention_masks &masks, const T *of_q, const T *of_k, const T *of_v,
                        const T *of_result, const attention_sum<T> *of_log_sum, const T *of_dresult,
                        Others... others) {
  using sum = attention_sum<T>;
  const pointer_list<Others...> rest(others...);
  constexpr int64_t count = sizeof...(Others);
  attention_tensors<T> tensors = {
      of_q, of_k, of_v, {}, const_cast<T *>(of_result), const_cast<sum *>(of_log_sum), nullptr};
  const int64_t first = take_masks_and_key(rest.of, sizes, dropout, tensors);
  attention_gradients<T> gradients = {of_dresult, nullptr, nullptr, nullptr, nullptr, nullptr};
  gradients.dq = static_cast<T *>(rest.of[first]);
  gradients.dk = static_cast<T *>(rest.of[first + 1]);
  gradients.dv = static_cast<T *>(rest.of[first + 2]);
  if (count == first + 5)
    gradients.dmask = static_cast<sum *>(rest.of[first + 3]);
  gradients.scratch = static_cast<char *>(rest.of[count - 1]);
  compute_attention_gradient<T>({sizes, batch, dropout, scale, q, k, v, result, masks},
                                {dresult, dq, dk, dv}, tensors, gradients);
}

// ---- for the compiler and the implementation

// A row's weights are computed once more from its log_sum. Where a finite mask hides all its keys,
// that is so far from 0 that it is rounded by more than weights are, and they do not add up to 1.
template <typename S> TRAINC_INLINE bool is_rounded_off(S log_sum) {
  constexpr S error_of_weights = S(1e-4);
  const S size = log_sum < 0 ? -log_sum : log_sum;
  return size * std::numeric_limits<S>::epsilon() > error_of_weights &&
         size <= std::numeric_limits<S>::max();
}

constexpr int64_t attention_tile_keys = 256;

// Threads share the heads of keys: `kept` that the gradient of masks tells apart, each of them
// `added` times. Where these are few, so that there is work for several threads, what is added
// is cut into parts with a mask's gradient each, and the keys of a head into parts with a dq each.
struct attention_split {
  int64_t added = 1, keys = 1;

  attention_split(const attention_sizes &sizes, int64_t kept, int64_t of_added) {
    constexpr int64_t enough = 16;
    const int64_t tiles = (sizes.keys + attention_tile_keys - 1) / attention_tile_keys;
    const auto parts = [](int64_t have, int64_t most) {
      return clamped_to<int64_t>((enough + have - 1) / have, 1, larger_of<int64_t>(most, 1));
    };
    added = parts(kept, of_added);
    keys = parts(kept * of_added, tiles);
  }

  // Memory for numbers of all queries, and for the masks' gradient.
  int64_t scratch_bytes(int64_t dq_bytes, int64_t mask_bytes) const {
    return larger_of<int64_t>(64, (keys > 1 ? keys * dq_bytes : 0) +
                                      (added > 1 ? added * mask_bytes : 0));
  }
};

} // namespace trainc
