// SPDX-License-Identifier: Apache-2.0
//
// How much of an arena is in use: bytes covered by tensors alive at a step, where
// tensors that share memory count once. A sweep over the steps with a tree of
// covered ranges (Klee's measure problem, Bentley 1977): n log n for n tensors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace trainc::planning {

struct PlacedBuffer {
  int64_t offset, bytes;
  int first, last; // steps, inclusive
};

/// Most bytes covered at one step and the first such step; -1 where nothing is alive.
std::pair<int64_t, int> coveredPeak(const std::vector<PlacedBuffer> &buffers);

} // namespace trainc::planning
