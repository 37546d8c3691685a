// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step.
#pragma once

#include <cstdint>

namespace trainc {

enum class schedule_kind { constant, linear, cosine };

struct rate_schedule {
  schedule_kind kind = schedule_kind::constant;
  double peak = 0;          // rate after warm-up
  double final_rate = 0;    // rate that the schedule reaches behind its last step
  int64_t warmup_steps = 0; // rate rises linearly over these
  int64_t total_steps = 0;  // warm-up included

  // `step` counts from 1. With t steps taken since warm-up and T = total - warm-up:
  // linear is PyTorch's LinearLR, peak + (final - peak) * min(t, T) / T; cosine is
  // CosineAnnealingLR, final + (peak - final) * (1 + cos(pi * t / T)) / 2, held at
  // `final` from T on.
  double operator()(int64_t step) const;
};

} // namespace trainc
