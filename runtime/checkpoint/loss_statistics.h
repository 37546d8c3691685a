// SPDX-License-Identifier: Apache-2.0
//
// How the last losses of a run were spread, by which a spike is told from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace trainc {

// Mean and variance, where each loss weighs 1/100 less than the next: West, "Updating mean and
// variance estimates" (1979), with a weight of 1/n until there are 100. Numbers alone, the same on
// every rank, so that a checkpoint can hold them.
struct loss_statistics {
  static constexpr int64_t window = 100, fewest = 20; // losses; below the fewest nothing is a spike

  int64_t count = 0;
  double mean = 0, variance = 0;

  void add(double loss) {
    double share = 1 / static_cast<double>(std::min(++count, window)), change = loss - mean;
    mean += share * change;
    variance = (1 - share) * (variance + share * change * change);
  }

  // Above it a loss is a spike: so many standard deviations above the mean.
  double limit(double deviations) const {
    if (count < fewest || deviations <= 0)
      return INFINITY;
    constexpr double rounding = 1e-6; // of losses that are all the same
    return mean + deviations * std::max(std::sqrt(variance), rounding * std::abs(mean));
  }
};

} // namespace trainc
