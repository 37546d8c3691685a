// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_scalars.h"

#include <cmath>
#include <cstring>

namespace trainc {

double step_scalars::hyperparameter(int64_t number, int64_t step) const {
  const program &program = run_.prog;
  const std::optional<double> given = run_.options.hyperparameters[static_cast<size_t>(number)];
  const char *follows = program.hyperparameters[number].follows;
  if (follows && strcmp(follows, "learning_rate") == 0) {
    rate_schedule own = schedule_;
    own.peak = given.value_or(schedule_.peak);
    return own(step);
  }
  for (int64_t i = 0; follows && !given && i < program.hyperparameter_count; ++i)
    if (strcmp(follows, program.hyperparameters[i].name) == 0)
      return hyperparameter(i, step);
  return given.value_or(program.hyperparameters[number].default_value);
}

void step_scalars::set(int64_t step, int64_t updates, int64_t batches, double loss_limit,
                       double loss_scale) {
  const program &program = run_.prog;
  device &target = run_.target;
  for (int64_t i = 0; i < program.hyperparameter_count; ++i)
    target.set_scalar(program.hyperparameters[i].offset, hyperparameter(i, step));
  target.set_scalar(program.learning_rate_offset, schedule_(step));
  target.set_scalar(program.step_offset, static_cast<double>(updates));
  target.set_scalar(program.gradient_scale_offset, 1.0 / static_cast<double>(batches));
  auto limit = [](double most) { return most > 0 ? most : INFINITY; };
  target.set_scalar(program.clip_norm_offset, limit(run_.options.clip_norm));
  target.set_scalar(program.clip_value_offset, limit(run_.options.clip_value));
  target.set_scalar(program.loss_limit_offset, loss_limit);
  if (program.loss_scale_offset >= 0)
    target.set_scalar(program.loss_scale_offset, loss_scale);
}

} // namespace trainc
