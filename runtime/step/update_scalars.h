// SPDX-License-Identifier: Apache-2.0
//
// The numbers that an update reads and that change from step to step.
#pragma once

#include "runtime/device.h"

#include <cstring>
#include <optional>
#include <span>

namespace trainc {

struct update_scalars {
  double learning_rate;
  int64_t updates;              // those taken until then, with this one
  int64_t micro_batches;        // of the step, over all ranks
  double clip_norm, clip_value; // 0, or infinity: no clipping
  double loss_limit;            // a larger loss is a spike
  double loss_scale;            // of programs that have one
};

// Sets all but the hyperparameters of the optimizer.
void set_update_scalars(device &target, const program &program, const update_scalars &values);

// The value of hyperparameter `number`: the one that is given, or that of the hyperparameter which
// it follows, or its default. `rate(peak)` is the learning rate of the step; of a group that has
// one of its own, with that peak.
template <typename Rate>
double hyperparameter_value(const program &program, std::span<const std::optional<double>> given,
                            int64_t number, const Rate &rate) {
  const std::optional<double> own = given[static_cast<size_t>(number)];
  const char *follows = program.hyperparameters[number].follows;
  if (follows && strcmp(follows, "learning_rate") == 0)
    return rate(own);
  for (int64_t i = 0; follows && !own && i < std::ssize(program.hyperparameters); ++i)
    if (strcmp(follows, program.hyperparameters[i].name) == 0)
      return hyperparameter_value(program, given, i, rate);
  return own.value_or(program.hyperparameters[number].default_value);
}

} // namespace trainc
