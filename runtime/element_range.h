// SPDX-License-Identifier: Apache-2.0
//
// A part of the flat arenas.
#pragma once

#include "runtime/kernels/bounds.h"

#include <cstdint>

namespace trainc {

// Elements [begin, end).
struct element_range {
  int64_t begin = 0, end = INT64_MAX;

  // What of `count` elements from `first` on is in the range, counted from there; the end is never
  // before the begin.
  element_range within(int64_t first, int64_t count) const {
    const int64_t from = clamped_to<int64_t>(begin - first, 0, count);
    return {from, clamped_to<int64_t>(end - first, from, count)};
  }
};

// What of a run, `count` elements from `first` on, is in some ranges.
struct ranges_of_run {
  const element_range *ranges;
  int64_t range_count, first, count;

  // Calls visit(its first element, counted from that of the run, and their number) for each range.
  template <typename Visit> void for_each(const Visit &visit) const {
    for (int64_t i = 0; i < range_count; ++i)
      if (const element_range part = ranges[i].within(first, count); part.begin < part.end)
        visit(part.begin, part.end - part.begin);
  }
};

// Ascending, in elements of the gradients arena.
struct range_list {
  const element_range *ranges = nullptr;
  int64_t count = 0;

  const element_range *begin() const { return ranges; }
  const element_range *end() const { return ranges + count; }
  ranges_of_run within(int64_t first, int64_t elements) const {
    return {ranges, count, first, elements};
  }
};

inline constexpr element_range every_element = {};

// How many blocks of a device share out points; each takes so many at a time.
constexpr unsigned blocks_for(int64_t points, int64_t points_of_block, int64_t most) {
  return static_cast<unsigned>(smaller_of((points + points_of_block - 1) / points_of_block, most));
}

} // namespace trainc
