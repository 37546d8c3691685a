// SPDX-License-Identifier: Apache-2.0
//
// A part of the flat arenas.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainc {

// Elements [begin, end).
struct element_range {
  int64_t begin = 0, end = INT64_MAX;

  // What of `count` elements from `first` on is in the range, counted from there; the end is never
  // before the begin.
  element_range within(int64_t first, int64_t count) const {
    const int64_t from = std::clamp<int64_t>(begin - first, 0, count);
    return {from, std::clamp<int64_t>(end - first, from, count)};
  }
};

} // namespace trainc
