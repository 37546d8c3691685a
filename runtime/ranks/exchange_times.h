// SPDX-License-Identifier: Apache-2.0
//
// When the ranks exchanged the gradients of a step.
#pragma once

namespace trainc {

// The times of one rank. All 0: there was no exchange.
struct exchange_times {
  double begin = 0, end = 0; // seconds_now(); of a record the seconds since the step began
  double exposed = 0;        // in which the rank did nothing else: after its backward pass
  double adding = 0;         // without what it waited for others, added over its threads
  double beside = 0;         // of that, what was done before the backward pass ended

  exchange_times since(double step_began) const {
    exchange_times of_step = *this;
    if (end > 0) {
      of_step.begin -= step_began;
      of_step.end -= step_began;
    }
    return of_step;
  }
};

} // namespace trainc
