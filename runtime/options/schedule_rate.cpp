// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step: a pure function of the step, so that a
// resumed run needs no scheduler state.
#include "runtime/options/schedule_rate.h"

#include "runtime/options/options.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

namespace trainc {
namespace {

constexpr double default_time_scale = 10000; // of inverse_sqrt, steps

using kind = schedule_kind;

constexpr unsigned bits_of(std::initializer_list<kind> kinds) {
  unsigned bits = 0;
  for (kind each : kinds)
    bits |= 1u << static_cast<unsigned>(each);
  return bits;
}

// What not all schedules read.
struct reader_row {
  const char *option;
  unsigned kinds; // bits
};
constexpr reader_row readers[] = {
    {"final-learning-rate", bits_of({kind::linear, kind::cosine, kind::cosine_restarts,
                                     kind::polynomial, kind::warmup_stable_decay})},
    {"schedule-steps",
     bits_of({kind::linear, kind::cosine, kind::polynomial, kind::warmup_stable_decay})},
    {"schedule-power", bits_of({kind::polynomial})},
    {"cycle-steps", bits_of({kind::cosine_restarts})},
    {"cycle-factor", bits_of({kind::cosine_restarts})},
    {"decay-steps", bits_of({kind::warmup_stable_decay})},
    {"decay-every", bits_of({kind::step})},
    {"decay-factor", bits_of({kind::step, kind::exponential})},
};

// Where in its cycle step t is, from 0 to 1. Cycles grow by a factor.
double part_of_cycle(double t, double length, double factor) {
  if (factor == 1)
    return std::fmod(t, length) / length;
  // Cycle n begins at length (factor ^ n - 1) / (factor - 1); the root may round across a border.
  double cycle = std::floor(std::log(t / length * (factor - 1) + 1) / std::log(factor));
  auto begin = [&](double n) { return length * (std::pow(factor, n) - 1) / (factor - 1); };
  if (begin(cycle + 1) <= t)
    ++cycle;
  else if (begin(cycle) > t)
    --cycle;
  return (t - begin(cycle)) / (length * std::pow(factor, cycle));
}

} // namespace

double rate_schedule::operator()(int64_t step) const {
  if (step <= warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  int64_t length = std::max<int64_t>(total_steps - warmup_steps, 1),
          since = step - 1 - warmup_steps;
  auto t = static_cast<double>(since);
  double part = static_cast<double>(std::min(since, length)) / static_cast<double>(length);
  auto between = [&](double share) { return final_rate + (peak - final_rate) * share; };
  switch (kind) {
  case schedule_kind::constant:
    return peak;
  case schedule_kind::linear:
    return peak + (final_rate - peak) * part;
  case schedule_kind::cosine:
    return between((1 + std::cos(M_PI * part)) / 2);
  case schedule_kind::cosine_restarts:
    return between(
        (1 + std::cos(M_PI * part_of_cycle(t, static_cast<double>(cycle_steps), cycle_factor))) /
        2);
  case schedule_kind::polynomial:
    return between(std::pow(1 - part, power));
  case schedule_kind::inverse_sqrt: {
    double scale = warmup_steps > 0 ? static_cast<double>(warmup_steps) : default_time_scale;
    return peak * std::sqrt(scale / (scale + t));
  }
  case schedule_kind::warmup_stable_decay: {
    int64_t decay = std::min(decay_steps, length),
            into = std::min(since, length) - (length - decay);
    return peak + (final_rate - peak) * (static_cast<double>(std::max<int64_t>(into, 0)) /
                                         static_cast<double>(std::max<int64_t>(decay, 1)));
  }
  case schedule_kind::step: {
    const int64_t falls = since / decay_every;
    return peak * std::pow(decay_factor, static_cast<double>(falls));
  }
  case schedule_kind::exponential:
    return peak * std::pow(decay_factor, t);
  }
  return peak;
}

rate_schedule schedule_of(const trainer_options &options, int64_t last_step) {
  rate_schedule schedule;
  schedule.kind = options.schedule;
  schedule.peak = options.learning_rate;
  schedule.final_rate = options.final_learning_rate;
  schedule.warmup_steps = options.warmup_steps;
  schedule.total_steps = options.schedule_steps.value_or(last_step);
  schedule.power = options.schedule_power;
  schedule.cycle_steps = options.cycle_steps.value_or(schedule.cycle_steps);
  schedule.cycle_factor = options.cycle_factor;
  schedule.decay_steps = options.decay_steps.value_or(schedule.decay_steps);
  schedule.decay_every = options.decay_every.value_or(schedule.decay_every);
  schedule.decay_factor = options.decay_factor.value_or(schedule.decay_factor);
  return schedule;
}

bool schedule_reads(schedule_kind schedule, const std::string &option) {
  for (const reader_row &row : readers)
    if (option == row.option)
      return row.kinds & bits_of({schedule});
  return true;
}

std::string schedules_that_read(const std::string &option, const char *separator) {
  std::string words;
  for (const word_row<schedule_kind> &row : schedule_words)
    if (schedule_reads(row.value, option))
      words += (words.empty() ? "" : separator) + std::string(row.word);
  return words;
}

bool is_schedule_given(const trainer_options &options) {
  auto is_given = [&](const char *option) { return options.given.count(option) > 0; };
  return is_given("schedule") || is_given("learning-rate") || is_given("warmup-steps") ||
         std::any_of(std::begin(readers), std::end(readers),
                     [&](const reader_row &row) { return is_given(row.option); });
}

} // namespace trainc
