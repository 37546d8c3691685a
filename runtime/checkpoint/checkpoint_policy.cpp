// SPDX-License-Identifier: Apache-2.0
//
// When checkpoints are written and which of them stay, on plain numbers.
#include "runtime/checkpoint/checkpoint_policy.h"

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
  else if (unit == "epochs" || unit == "epoch")
    value.of = period::epochs;
  else
    return false;
  return value.of != period::steps ||
         (value.count == std::floor(value.count) && value.count < 1e15);
}

namespace {

constexpr std::string_view of_evaluation = "held-out-";

bool is_named(std::string_view metric, std::string_view result) {
  return std::equal(metric.begin(), metric.end(), result.begin(), result.end(),
                    [](char a, char b) { return a == b || (a == '-' && b == '_'); });
}

} // namespace

bool is_of_evaluation(const std::string &metric) { return metric.starts_with(of_evaluation); }

double metric_of(const std::string &metric, double loss, std::span<const named_number> evaluated) {
  if (metric == "loss")
    return loss;
  if (!is_of_evaluation(metric))
    return NAN;
  const std::string_view name = std::string_view(metric).substr(of_evaluation.size());
  for (const named_number &result : evaluated)
    if (is_named(name, result.name))
      return more_is_better(name) ? -result.value : result.value;
  return NAN;
}

bool best_evaluation::add(int64_t its_step, double its_value) {
  if (!std::isfinite(its_value) || its_value >= value) { // the first is below NaN
    ++later;
    return false;
  }
  *this = {its_step, its_value, 0};
  return true;
}

size_t first_superfluous(const std::vector<kept_checkpoint> &kept, const keep_policy &policy) {
  size_t best = kept.size();
  int64_t newer = 0; // and sound
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i].is_sound)
      continue;
    ++newer;
    if (!std::isnan(kept[i].metric) && (best == kept.size() || kept[i].metric < kept[best].metric))
      best = i; // of equals the oldest
  }
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i].is_sound && --newer >= policy.newest && i != best &&
        !(policy.every > 0 && kept[i].step % policy.every == 0))
      return i;
  return kept.size();
}

} // namespace trainc
