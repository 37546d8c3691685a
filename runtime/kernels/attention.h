// SPDX-License-Identifier: Apache-2.0
//
// nn.attention (dialects/nn/ops/attention.td).
#pragma once

#include "runtime/kernels/matmul.h"
#include "runtime/kernels/random.h"

#include <limits>
#include <type_traits>

namespace trainc {

// The sizes of one head. `sharing` heads of queries, neighbours in the batch, have one of keys.
// Query i sees keys up to i + reach.
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

// Dropout of the weights: element (head, query, key) is dropped by its number of the stream
// (runtime/kernels/random.h). Nothing is where `dropped` is 0.
struct attention_dropout {
  int64_t stream, dropped;
  double kept; // what others are multiplied by

  attention_dropout(int64_t stream = 0, int64_t dropped = 0)
      : stream(stream), dropped(dropped), kept(dropout_factor(dropped)) {}
};

// What masks, sums and numbers of rows are.
template <typename T>
using attention_sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The score of a key that a query does not see.
template <typename S> constexpr S hidden_score = -std::numeric_limits<S>::infinity();

template <typename T> struct attention_tensors {
  const T *q, *k, *v;
  const attention_sum<T> *masks[max_masks];
  T *result;
  attention_sum<T> *log_sum;
  const int64_t *key; // of the dropout; null where there is none
};

struct attention_shape {
  attention_sizes sizes;
  attention_batch batch;
  attention_dropout dropout;
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

// Takes masks and the key of a dropout; how many these are.
template <typename T>
int64_t take_masks_and_key(void *const *pointers, const attention_sizes &sizes,
                           const attention_dropout &dropout, attention_tensors<T> &tensors) {
  for (int64_t i = 0; i < sizes.masks; ++i)
    tensors.masks[i] = static_cast<const attention_sum<T> *>(pointers[i]);
  if (dropout.dropped == 0)
    return sizes.masks;
  tensors.key = static_cast<const int64_t *>(pointers[sizes.masks]);
  return sizes.masks + 1;
}

// `others` are masks, the key of a dropout, the result and log_sum.
template <typename T, typename... Others>
void attention(const attention_sizes &sizes, const attention_batch &batch,
               const attention_dropout &dropout, double scale, bool masked_to_zero,
               const matrix_layout &q, const matrix_layout &k, const matrix_layout &v,
               const matrix_layout &result, const attention_masks &masks, const T *of_q,
               const T *of_k, const T *of_v, Others... others) {
  const pointer_list<Others...> rest(others...);
  attention_tensors<T> tensors = {of_q, of_k, of_v, {}, nullptr, nullptr, nullptr};
  const int64_t first = take_masks_and_key(rest.of, sizes, dropout, tensors);
  tensors.result = static_cast<T *>(rest.of[first]);
  tensors.log_sum = static_cast<attention_sum<T> *>(rest.of[first + 1]);
  compute_attention<T>({sizes, batch, dropout, scale, q, k, v, result, masks}, masked_to_zero,
                       tensors);
}

} // namespace trainc
