// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step: a pure function of the step, so that a
// resumed run needs no scheduler state.
#include "runtime/schedule_rate.h"

#include "runtime/failure.h"
#include "runtime/options.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace trainc {
namespace {

constexpr double default_time_scale = 10000; // of inverse_sqrt, steps

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

void check_schedule(const trainer_options &options, problem_list &problems) {
  struct need {
    schedule_kind kind;
    bool is_met;
    const char *words;
  };
  const need needs[] = {
      {schedule_kind::cosine_restarts, options.cycle_steps.has_value(),
       "cosine-restarts needs --cycle-steps\n  try: --cycle-steps 1000"},
      {schedule_kind::warmup_stable_decay, options.decay_steps.has_value(),
       "warmup-stable-decay needs --decay-steps\n  try: --decay-steps 1000"},
      {schedule_kind::step, options.decay_every.has_value(),
       "step needs --decay-every\n  try: --decay-every 1000"},
      {schedule_kind::exponential, options.decay_factor.has_value(),
       "exponential needs --decay-factor\n  try: --decay-factor 0.999"},
  };
  for (const need &row : needs)
    if (options.schedule == row.kind && !row.is_met)
      problems.add(std::string("option --schedule: ") + row.words);
  using kind = schedule_kind;
  const std::pair<const char *, std::vector<kind>> readers[] = {
      {"final-learning-rate",
       {kind::linear, kind::cosine, kind::cosine_restarts, kind::polynomial,
        kind::warmup_stable_decay}},
      {"schedule-steps", {kind::linear, kind::cosine, kind::polynomial, kind::warmup_stable_decay}},
      {"schedule-power", {kind::polynomial}},
      {"cycle-steps", {kind::cosine_restarts}},
      {"cycle-factor", {kind::cosine_restarts}},
      {"decay-steps", {kind::warmup_stable_decay}},
      {"decay-every", {kind::step}},
      {"decay-factor", {kind::step, kind::exponential}},
  };
  for (const auto &[option, kinds] : readers) {
    if (!options.asks_for(option, "schedule") ||
        std::find(kinds.begin(), kinds.end(), options.schedule) != kinds.end())
      continue;
    std::string words;
    for (kind each : kinds)
      words += (words.empty() ? "" : "|") + std::string(word_of(schedule_words, each));
    problems.add(std::string("option --") + option + ": the schedule " +
                 word_of(schedule_words, options.schedule) +
                 " does not read it\n  try: --schedule " + words);
  }
}

} // namespace trainc
