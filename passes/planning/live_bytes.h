// SPDX-License-Identifier: Apache-2.0
//
// Bytes alive at each position of a program, and the most at any: a tree of
// maxima, so that a change of a tensor's lifetime and a look at the peak take
// log n.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

class LiveBytes {
public:
  explicit LiveBytes(int positions);

  /// `bytes` more (or less) from `first` to `last`, inclusive.
  void add(int first, int last, int64_t bytes) {
    if (bytes != 0 && first <= last)
      add(1, 0, count - 1, first, last, bytes);
  }
  int64_t peak() const { return most[1]; }

private:
  void add(int node, int low, int high, int first, int last, int64_t bytes);

  int count;
  std::vector<int64_t> everywhere, most; // of a node: added to all of it; most below it
};

} // namespace trainc::planning
