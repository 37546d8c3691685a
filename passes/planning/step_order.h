// SPDX-License-Identifier: Apache-2.0
//
// An order of steps with little memory alive at once.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc::planning {

struct Step {
  std::vector<int> reads;  // tensors
  std::vector<int> writes; // tensors; each is written by one step
  std::vector<int> after;  // steps which must come before for other reasons
};

/// `bytes[t]` is what tensor t costs while alive: from its writer to its last
/// reader, or to the end where `kept[t]`. Tensors without a writer cost nothing.
/// The result is the program order or, where its peak is lower, a greedy one:
/// of the steps that are ready, one that frees at least what it allocates,
/// else the first of the program. Steps on a cycle are left out.
std::vector<int> orderSteps(const std::vector<Step> &steps, const std::vector<int64_t> &bytes,
                            const std::vector<bool> &kept);

/// Most bytes alive under an order.
int64_t peakBytes(const std::vector<Step> &steps, const std::vector<int64_t> &bytes,
                  const std::vector<bool> &kept, const std::vector<int> &order);

} // namespace trainc::planning
