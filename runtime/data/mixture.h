// SPDX-License-Identifier: Apache-2.0
//
// A stream of samples from several sources in given shares. Which source the sample at a position
// is from, and which of that source's samples it is, follows from the position and the seed alone:
// any rank can ask for any position, and a resumed run needs no state. Every 10,000 positions
// hold each source's share exactly, in shuffled order.
#pragma once

#include "runtime/data/permutation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainc {

class mixture {
public:
  static constexpr int64_t block_size = 10000;

  mixture() = default;
  // `shares` of the sources: `shares_of` some weights.
  mixture(const std::vector<int64_t> &shares, uint64_t seed) : shares_(shares), seed_(seed) {}

  // Positions of a block that each weight gets: rounded so that they add up. One may be zero.
  static std::vector<int64_t> shares_of(const std::vector<double> &weights) {
    double total = 0;
    for (double weight : weights)
      total += weight;
    std::vector<int64_t> shares;
    std::vector<size_t> order;
    int64_t left = block_size;
    auto exact = [&](size_t i) { return weights[i] / total * block_size; };
    for (size_t i = 0; i < weights.size(); ++i) {
      shares.push_back(std::min(static_cast<int64_t>(exact(i)), left));
      left -= shares.back();
      order.push_back(i);
    }
    // The largest remainders get what is left.
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return exact(a) - static_cast<double>(shares[a]) > exact(b) - static_cast<double>(shares[b]);
    });
    for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left)
      ++shares[order[i]];
    return shares;
  }

  struct draw {
    size_t source;
    int64_t index; // how many samples of the source came before
  };
  draw operator()(int64_t position) {
    int64_t block = position / block_size;
    if (block != block_) {
      block_ = block;
      order_ = permutation(block_size, seed_, static_cast<uint64_t>(block), random_stream::mixture);
    }
    auto slot = static_cast<int64_t>(order_(static_cast<uint64_t>(position % block_size)));
    size_t source = 0;
    while (slot >= shares_[source])
      slot -= shares_[source++];
    return {source, block * shares_[source] + slot};
  }

private:
  std::vector<int64_t> shares_;
  uint64_t seed_ = 0;
  int64_t block_ = -1; // that `order_` is of
  permutation order_;
};

} // namespace trainc
