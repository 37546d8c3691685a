// SPDX-License-Identifier: Apache-2.0
//
// Gradients of which no rank keeps all (trainc --shard gradients): functions of the program make
// them in the activations arena, in buckets, and tell of each behind the step with which it is
// whole. It stays as it is until the next one is, or the function ends.
#pragma once

#include "runtime/element_range.h"

namespace trainc {

class gradient_exchange {
public:
  virtual ~gradient_exchange() = default;
  virtual void complete(int bucket) = 0; // of the function that runs, by its number
};

// One gradient: where it is, in bytes of the activations arena, and its elements of the gradients
// arena.
struct gradient_piece {
  int64_t offset;
  element_range elements;
};

struct gradient_bucket {
  const gradient_piece *pieces;
  int64_t count;

  const gradient_piece *begin() const { return pieces; }
  const gradient_piece *end() const { return pieces + count; }
};

// Those of a function, in the order in which they are whole.
struct bucket_list {
  const gradient_bucket *buckets = nullptr;
  int64_t count = 0;

  const gradient_bucket *begin() const { return buckets; }
  const gradient_bucket *end() const { return buckets + count; }
};

} // namespace trainc
