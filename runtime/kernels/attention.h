// SPDX-License-Identifier: Apache-2.0
//
// nn.attention (dialects/nn/ops/attention.td).
#pragma once

#include "runtime/kernels/matmul.h"

#include <limits>
#include <type_traits>

namespace trainc {

// Of one head. `sharing` heads of queries, neighbours in the batch, have one of keys. Query i sees
// keys up to i + reach.
struct attention_sizes {
  int64_t queries, keys, size, value_size, sharing, reach, masks;
};

// Sizes of the batch; 0 after the last.
struct attention_batch {
  int64_t of[max_batch_rank] = {};
};

// Masks that are read, then that whose gradient is written. Strides are 0 along what they are the
// same for.
constexpr int max_masks = 2;
struct attention_masks {
  matrix_layout of[max_masks + 1] = {};
};

// What masks, sums and numbers of rows are.
template <typename T>
using attention_sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Of a key that a query does not see.
template <typename S> constexpr S hidden_score = -std::numeric_limits<S>::infinity();

template <typename T> struct attention_tensors {
  const T *q, *k, *v;
  const attention_sum<T> *masks[max_masks];
  T *result;
  attention_sum<T> *log_sum;
};

struct attention_shape {
  attention_sizes sizes;
  attention_batch batch;
  double scale;
  matrix_layout q, k, v, result;
  attention_masks masks;
};

// The order of every sum follows from the shape alone.
template <typename T>
void compute_attention(const attention_shape &shape, bool masked_to_zero,
                       const attention_tensors<T> &tensors);

// ---- what is emitted calls: the tensors are those of nn's operation, in order

template <typename... Pointers> struct pointer_list {
  void *of[sizeof...(Pointers)];
  explicit pointer_list(Pointers... pointers)
      : of{const_cast<void *>(static_cast<const void *>(pointers))...} {}
};

// `others` are masks, the result and log_sum.
template <typename T, typename... Others>
void attention(const attention_sizes &sizes, const attention_batch &batch, double scale,
               bool masked_to_zero, const matrix_layout &q, const matrix_layout &k,
               const matrix_layout &v, const matrix_layout &result, const attention_masks &masks,
               const T *of_q, const T *of_k, const T *of_v, Others... others) {
  using sum = attention_sum<T>;
  const pointer_list<Others...> rest(others...);
  attention_tensors<T> tensors = {of_q, of_k, of_v, {}, nullptr, nullptr};
  for (int64_t i = 0; i < sizes.masks; ++i)
    tensors.masks[i] = static_cast<const sum *>(rest.of[i]);
  tensors.result = static_cast<T *>(rest.of[sizes.masks]);
  tensors.log_sum = static_cast<sum *>(rest.of[sizes.masks + 1]);
  compute_attention<T>({sizes, batch, scale, q, k, v, result, masks}, masked_to_zero, tensors);
}

} // namespace trainc
