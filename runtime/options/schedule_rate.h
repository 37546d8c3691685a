// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step.
#pragma once

#include "runtime/words.h"

#include <cstdint>
#include <string>

namespace trainc {

struct trainer_options;

enum class schedule_kind {
  constant,
  linear,
  cosine,
  cosine_restarts,
  polynomial,
  inverse_sqrt,
  warmup_stable_decay,
  step,
  exponential,
};

inline constexpr word_row<schedule_kind> schedule_words[] = {
    {"constant", schedule_kind::constant},
    {"linear", schedule_kind::linear},
    {"cosine", schedule_kind::cosine},
    {"cosine-restarts", schedule_kind::cosine_restarts},
    {"polynomial", schedule_kind::polynomial},
    {"inverse-sqrt", schedule_kind::inverse_sqrt},
    {"warmup-stable-decay", schedule_kind::warmup_stable_decay},
    {"step", schedule_kind::step},
    {"exponential", schedule_kind::exponential},
};

struct rate_schedule {
  schedule_kind kind = schedule_kind::constant;
  double peak = 0;           // rate after warm-up
  double final_rate = 0;     // rate that the schedule reaches after its last step
  int64_t warmup_steps = 0;  // rate rises linearly over these
  int64_t total_steps = 0;   // warm-up included
  double power = 1;          // polynomial
  int64_t cycle_steps = 0;   // cosine_restarts: of the first cycle
  double cycle_factor = 1;   // cosine_restarts: a cycle's length over that of the one before
  int64_t decay_steps = 0;   // warmup_stable_decay: the last ones
  int64_t decay_every = 1;   // step
  double decay_factor = 0.1; // step, exponential

  // `step` counts from 1. With t steps taken since warm-up, p the peak, f the final rate, T = total
  // - warm-up and t at most T, each is a schedule of torch.optim.lr_scheduler:
  //   linear              LinearLR: p + (f - p) t / T
  //   cosine              CosineAnnealingLR: f + (p - f) (1 + cos(pi t / T)) / 2
  //   cosine_restarts     CosineAnnealingWarmRestarts: the same with t and T of the cycle; goes on
  //   polynomial          PolynomialLR where f is 0: f + (p - f) (1 - t / T) ^ power
  //   inverse_sqrt        LambdaLR: p sqrt(s / (s + t)), s the warm-up's length, 10,000 without one
  //   warmup_stable_decay p, then linear over the last steps to f
  //   step                StepLR: p factor ^ floor(t / every)
  //   exponential         ExponentialLR: p factor ^ t
  double operator()(int64_t step) const;
};

// Whether the rate depends on an option, which is not read by all: "decay-factor". The words of
// the schedules that do, in the order of the table above.
bool schedule_reads(schedule_kind kind, const std::string &option);
std::string schedules_that_read(const std::string &option, const char *separator);

// Whether the command line says something of the rate, other than how long the run is.
bool is_schedule_given(const trainer_options &options);

// As the options of `train` say; `last_step` is the run's.
rate_schedule schedule_of(const trainer_options &options, int64_t last_step);

} // namespace trainc
