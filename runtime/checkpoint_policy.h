// SPDX-License-Identifier: Apache-2.0
//
// When checkpoints are written and which of them stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

// How often something happens: "100" or "100steps", "10min", "0.5epochs". 0: never.
struct period {
  enum unit { steps, minutes, epochs } of = steps;
  double count = 0;
};

// False where the text is no period; a number of steps is whole.
bool to_period(const std::string &text, period &value);

// What a checkpoint can be the best by; the lowest is.
enum class checkpoint_metric { none, loss, held_out_loss };

struct keep_policy {
  int64_t newest = 2;                                  // so many of the newest stay
  int64_t every = 0;                                   // and those of every so many steps; 0: none
  checkpoint_metric best_by = checkpoint_metric::none; // and the best one
};

struct kept_checkpoint {
  int64_t step;
  uint64_t sequence; // the newest has the greatest
  int ranks;         // whose files it has
  double metric;     // of the policy; NaN where it has none
  bool is_sound = true;
};

// The first of `kept` (oldest first) that need not stay, or its size. Those that are not sound
// neither count nor go: a damaged newest one does not cost the good one before it.
size_t first_superfluous(const std::vector<kept_checkpoint> &kept, const keep_policy &policy);

} // namespace trainc
