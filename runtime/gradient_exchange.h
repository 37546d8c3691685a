// SPDX-License-Identifier: Apache-2.0
//
// What a function tells of its gradients, after the step with which a bucket of them is whole.
// Where each rank keeps all of them, in the gradients arena, no later step reads or writes a
// bucket: the ranks may add it meanwhile. Where no rank does (trainc --shard gradients) they are
// made in the activations arena, and a bucket stays as it is until the next one is whole, or the
// function ends.
#pragma once

#include "runtime/element_range.h"

#include <span>

namespace trainc {

// Fewer gradients are exchanged after the backward pass, unless it is asked for: to tell a thread
// or a stream of them takes about as long.
constexpr int64_t least_overlapped_bytes = 4 << 20;

class gradient_exchange {
public:
  virtual ~gradient_exchange() = default;
  virtual void complete(int bucket) = 0; // of the function that runs, by its number
};

// One gradient, or several that lie side by side: where they are, in bytes of their arena, and
// their elements of the gradients arena.
struct gradient_piece {
  int64_t offset;
  element_range elements;
};

using gradient_bucket = std::span<const gradient_piece>;

// Those of a function, in the order in which they are whole.
using bucket_list = std::span<const gradient_bucket>;

} // namespace trainc
