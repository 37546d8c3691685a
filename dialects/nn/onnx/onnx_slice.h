// SPDX-License-Identifier: Apache-2.0
//
// What ONNX's Slice takes of one dimension, for its import and for folding.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainc::nn {

struct SliceRange {
  int64_t first, count; // elements first, first + step, ...
};

/// Negative bounds count from the end. Forward, both are clamped to [0, size]; backward, the
/// start to [0, size - 1] and the end to [-1, size - 1] (Slice-13 of the ONNX operators).
/// `step` is not 0.
inline SliceRange sliceRange(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (size == 0)
    return {0, 0};
  int64_t last = step > 0 ? size : size - 1;
  int64_t from = std::clamp<int64_t>(start < 0 ? start + size : start, 0, last);
  int64_t to = std::clamp<int64_t>(end < 0 ? end + size : end, step > 0 ? 0 : -1, last);
  int64_t distance = step > 0 ? to - from : from - to;
  if (distance <= 0)
    return {from, 0};
  // the greatest steps have no negative or sum in 64 bits
  uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return {from, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1)};
}

} // namespace trainc::nn
