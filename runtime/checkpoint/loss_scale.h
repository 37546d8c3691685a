// SPDX-License-Identifier: Apache-2.0
//
// What gradients are multiplied by, so that small ones do not become 0 in 16 bits: as PyTorch's
// GradScaler has it, in its arithmetic.
#pragma once

#include <cmath>
#include <cstdint>

namespace trainc {

// How a scale changes. An interval of 0 steps: it does not.
struct loss_scale_rules {
  double growth = 2, backoff = 0.5; // factors
  int64_t interval = 2000;          // steps whose gradients are finite, after which it grows
};

// Numbers alone, the same on every rank, so that a checkpoint can hold them.
struct loss_scale {
  double factor = 0;        // of the next step; 0: gradients are not scaled
  int64_t finite_steps = 0; // in a row, since it changed

  void note(bool is_finite, const loss_scale_rules &rules) {
    if (rules.interval == 0 || factor == 0)
      return;
    if (!is_finite) {
      change(rules.backoff);
    } else if (++finite_steps >= rules.interval) {
      change(rules.growth);
    }
  }

private:
  void change(double by) {
    const auto now = static_cast<float>(factor * by);
    if (std::isfinite(now))
      factor = static_cast<double>(now);
    finite_steps = 0;
  }
};

} // namespace trainc
