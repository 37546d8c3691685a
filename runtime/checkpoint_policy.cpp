// SPDX-License-Identifier: Apache-2.0
//
// When checkpoints are written and which of them stay, on plain numbers.
#include "runtime/checkpoint_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace trainc {

bool to_period(const std::string &text, period &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value.count);
  if (error != std::errc() || !std::isfinite(value.count) || value.count < 0)
    return false;
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.empty() || unit == "steps")
    value.of = period::steps;
  else if (unit == "min")
    value.of = period::minutes;
  else if (unit == "epochs")
    value.of = period::epochs;
  else
    return false;
  return value.of != period::steps ||
         (value.count == std::floor(value.count) && value.count < 1e15);
}

size_t first_superfluous(const std::vector<kept_checkpoint> &kept, const keep_policy &policy) {
  size_t best = kept.size();
  int64_t newer = 0; // and sound
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i].is_sound)
      continue;
    ++newer;
    bool compares = policy.best_by != checkpoint_metric::none && !std::isnan(kept[i].metric);
    if (compares && (best == kept.size() || kept[i].metric < kept[best].metric))
      best = i; // of equals the oldest
  }
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i].is_sound && --newer >= policy.newest && i != best &&
        !(policy.every > 0 && kept[i].step % policy.every == 0))
      return i;
  return kept.size();
}

} // namespace trainc
