// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a step reads and that change from step to step: rates, other hyperparameters,
// limits.
#pragma once

#include "runtime/options/schedule_rate.h"
#include "runtime/run/run.h"

namespace trainc {

class step_scalars {
public:
  step_scalars(run &run, const rate_schedule &schedule) : run_(run), schedule_(schedule) {}

  double rate(int64_t step) const { return schedule_(step); }
  const rate_schedule &schedule() const { return schedule_; }

  // `updates`: those taken until then, with this one; `batches`: those of a step; `loss_limit`: a
  // larger loss is a spike; `loss_scale`: of programs that have one.
  void set(int64_t step, int64_t updates, int64_t batches, double loss_limit, double loss_scale);

private:
  run &run_;
  rate_schedule schedule_;
};

} // namespace trainc
