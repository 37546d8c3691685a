// SPDX-License-Identifier: Apache-2.0
//
// What gradients are multiplied by, so that small ones do not become 0 in 16 bits: as PyTorch's
// GradScaler has it, in its arithmetic, but that it does not fall below 1.
#pragma once

#include <algorithm>
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

  // After a step whose loss is finite: another one would be infinite with any scale.
  void note(bool is_gradient_finite, const loss_scale_rules &rules) {
    if (rules.interval == 0 || factor == 0)
      return;
    if (!is_gradient_finite) {
      change_to(std::max(factor * rules.backoff, std::min(factor, least)));
    } else if (++finite_steps >= rules.interval) {
      change_to(factor * rules.growth);
    }
  }

private:
  // Gradients that are too large without a scale are so in the model. In the end it would be 0.
  static constexpr double least = 1;

  void change_to(double value) {
    const auto rounded = static_cast<float>(value);
    if (std::isfinite(rounded))
      factor = static_cast<double>(rounded);
    finite_steps = 0;
  }
};

} // namespace trainc
