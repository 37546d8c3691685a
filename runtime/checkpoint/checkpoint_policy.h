// SPDX-License-Identifier: Apache-2.0
//
// When checkpoints are written and which of them stay.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainc {

// How often something happens: "100" or "100steps", "10min", "0.5epochs" (or "epoch"). 0: never.
struct period {
  enum unit { steps, minutes, epochs } of = steps;
  double count = 0;
};

// False where the text is not a period; a number of steps is whole.
bool to_period(const std::string &text, period &value);

// A result of an evaluation: the loss, a metric.
struct named_number {
  const char *name; // as in JSON: "top_5_accuracy"
  double value;
};

// A metric is what checkpoints and evaluations are compared by: "none", "loss" (of the step), or
// "held-out-" and a result of the evaluation, with dashes: "held-out-top-5-accuracy".
bool is_of_evaluation(const std::string &metric);
// What else programs tell of outputs are errors.
inline bool more_is_better(std::string_view metric) { return metric.ends_with("accuracy"); }

// So that less is better: an accuracy has the other sign. NaN where there is none. Allocates
// nothing.
double metric_of(const std::string &metric, double loss, std::span<const named_number> evaluated);

struct keep_policy {
  int64_t newest = 2;           // so many of the newest stay
  int64_t every = 0;            // and those of every so many steps; 0: none
  std::string best_by = "none"; // and the best one by this metric
  // What evaluations are compared by.
  std::string watched() const { return is_of_evaluation(best_by) ? best_by : "held-out-loss"; }
};

// The best evaluation of a run so far.
struct best_evaluation {
  int64_t step = 0;   // 0: there was none
  double value = NAN; // of the metric, so that less is better
  int64_t later = 0;  // evaluations since then

  // Whether the evaluation after that is better. One that is not finite is not.
  bool add(int64_t step, double value);
};

struct kept_checkpoint {
  int64_t step;
  uint64_t sequence; // the newest has the greatest
  int ranks;         // whose files it has
  double metric;     // of the policy (metric_of); NaN where it has none
  bool is_sound = true;
};

// The first of `kept` (oldest first) that need not stay, or its size. Those that are not sound
// neither count nor go: a damaged newest one does not cost the good one before it.
size_t first_superfluous(const std::vector<kept_checkpoint> &kept, const keep_policy &policy);

} // namespace trainc
