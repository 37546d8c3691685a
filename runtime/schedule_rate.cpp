// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step: a pure function of the step, so that a
// resumed run needs no scheduler state.
#include "runtime/schedule_rate.h"

#include <algorithm>
#include <cmath>

namespace trainc {

double rate_schedule::operator()(int64_t step) const {
  if (step <= warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (kind == schedule_kind::constant)
    return peak;
  int64_t length = std::max<int64_t>(total_steps - warmup_steps, 1);
  int64_t taken = std::min(step - 1 - warmup_steps, length);
  double part = static_cast<double>(taken) / static_cast<double>(length);
  if (kind == schedule_kind::linear)
    return peak + (final_rate - peak) * part;
  return final_rate + (peak - final_rate) * (1 + std::cos(M_PI * part)) / 2;
}

} // namespace trainc
