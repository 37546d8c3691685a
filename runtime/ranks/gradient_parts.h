// SPDX-License-Identifier: Apache-2.0
//
// Which gradients each rank sums: equal parts in rank order, exchanged in pieces.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainc {

// All counts are elements.
class gradient_parts {
public:
  gradient_parts(int64_t elements, int ranks) : elements_(elements), ranks_(ranks) {}

  int64_t begin(int rank) const {
    constexpr int64_t alignment = 1024; // parts begin at whole pages of f32
    if (rank == ranks_)
      return elements_;
    return std::min(elements_, (elements_ * rank / ranks_ + alignment - 1) / alignment * alignment);
  }
  int64_t end(int rank) const { return begin(rank + 1); }
  int64_t size(int rank) const { return end(rank) - begin(rank); }
  int64_t longest() const {
    int64_t result = 0;
    for (int rank = 0; rank < ranks_; ++rank)
      result = std::max(result, size(rank));
    return result;
  }
  // Elements of the piece that begins `done` after the begin of a rank's part; 0 after its end.
  int64_t piece_size(int rank, int64_t done, int64_t largest_piece) const {
    return std::clamp<int64_t>(size(rank) - done, 0, largest_piece);
  }

private:
  int64_t elements_;
  int ranks_;
};

} // namespace trainc
