// SPDX-License-Identifier: Apache-2.0
//
// A tree of maxima over positions (live_bytes.h).
#include "passes/planning/live_bytes.h"

#include <algorithm>

namespace trainc::planning {

LiveBytes::LiveBytes(int positions)
    : count(std::max(1, positions)), everywhere(4 * size_t(count), 0), most(everywhere) {}

void LiveBytes::add(int node, int low, int high, int first, int last, int64_t bytes) {
  if (first <= low && high <= last) {
    everywhere[node] += bytes;
    most[node] += bytes;
    return;
  }
  int middle = low + (high - low) / 2;
  if (first <= middle)
    add(2 * node, low, middle, first, last, bytes);
  if (last > middle)
    add(2 * node + 1, middle + 1, high, first, last, bytes);
  most[node] = everywhere[node] + std::max(most[2 * node], most[2 * node + 1]);
}

} // namespace trainc::planning
