// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_scalars.h"

#include "runtime/step/update_scalars.h"

namespace trainc {

void step_scalars::set(int64_t step, int64_t updates, int64_t batches, double loss_limit,
                       double loss_scale) {
  const trainer_options &options = run_.options;
  auto rate = [&](const std::optional<double> &peak) {
    rate_schedule own = schedule_;
    own.peak = peak.value_or(schedule_.peak);
    return own(step);
  };
  for (int64_t i = 0; i < run_.prog.hyperparameter_count; ++i)
    run_.target.set_scalar(run_.prog.hyperparameters[i].offset,
                           hyperparameter_value(run_.prog, options.hyperparameters, i, rate));
  set_update_scalars(run_.target, run_.prog,
                     {schedule_(step), updates, batches, options.clip_norm, options.clip_value,
                      loss_limit, loss_scale});
}

} // namespace trainc
