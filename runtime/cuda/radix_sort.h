// SPDX-License-Identifier: Apache-2.0
//
// Sorts positions by key, stably: positions of equal keys stay in ascending order.
#pragma once

#include <cstdint>

namespace trainc {

struct sorted_positions {
  uint32_t *keys, *positions; // `count` of each
};

// Memory that a sort of `count` elements uses.
int64_t radix_sort_bytes(int64_t count);

// The two places in such memory that hold keys and positions in turn. The caller fills
// the first; `queue_radix_sort` says where the result is.
struct sort_storage {
  sort_storage(char *base, int64_t count);
  sorted_positions first, second;
  uint32_t *digit_counts;
};

// Queues the sort; keys are below 2^key_bits.
sorted_positions queue_radix_sort(const sort_storage &storage, int64_t count, int key_bits);

} // namespace trainc
