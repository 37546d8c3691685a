// SPDX-License-Identifier: Apache-2.0
//
// Offsets for buffers with known lifetimes so that those alive together never
// overlap. Several greedy orders with lowest-fit and best-fit placement, then a
// bounded search that moves the buffers at the top of the plan forward in the
// order; the best plan wins. Orders by time are scans with a list of free ranges,
// which is what is left of the method for tens of thousands of buffers. After
// greedy placement in TFLite and MiniMalloc (ASPLOS 2023). Deterministic. No proof of optimality;
// the lower bound tells.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

constexpr int64_t bufferAlignment = 64; // bytes: a cache line, and the widest vector

struct Buffer {
  int64_t bytes;
  int first, last; // steps, inclusive
};

struct MemoryPlan {
  std::vector<int64_t> offsets; // multiples of bufferAlignment
  int64_t bytes = 0;
  int64_t lowerBound = 0; // most bytes alive at one step, each buffer rounded up to the alignment
};

inline int64_t alignedBytes(int64_t bytes) {
  return (bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
}

MemoryPlan planMemory(const std::vector<Buffer> &buffers);

/// Most bytes alive at one step and the first such step.
std::pair<int64_t, int> peakOf(const std::vector<Buffer> &buffers);

} // namespace trainc::planning
