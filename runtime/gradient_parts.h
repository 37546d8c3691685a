// SPDX-License-Identifier: Apache-2.0
//
// Which gradients each rank sums: equal parts in rank order, exchanged in pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trainc {

// All counts are elements.
class gradient_parts {
public:
  gradient_parts(int64_t elements, int ranks) {
    constexpr int64_t alignment = 1024; // parts begin at whole pages of f32
    for (int rank = 0; rank < ranks; ++rank) {
      int64_t begin = (elements * rank / ranks + alignment - 1) / alignment * alignment;
      begin_.push_back(std::min(elements, begin));
    }
    begin_.push_back(elements);
  }

  int64_t begin(int rank) const { return begin_[static_cast<size_t>(rank)]; }
  int64_t end(int rank) const { return begin_[static_cast<size_t>(rank) + 1]; }
  int64_t size(int rank) const { return end(rank) - begin(rank); }
  int64_t longest() const {
    int64_t result = 0;
    for (size_t rank = 0; rank + 1 < begin_.size(); ++rank)
      result = std::max(result, begin_[rank + 1] - begin_[rank]);
    return result;
  }
  // Of the piece that begins `done` behind the begin of a rank's part; 0 behind its end.
  int64_t piece_size(int rank, int64_t done, int64_t largest_piece) const {
    return std::clamp<int64_t>(size(rank) - done, 0, largest_piece);
  }

private:
  std::vector<int64_t> begin_;
};

} // namespace trainc
