// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/update_scalars.h"

#include <cmath>

namespace trainc {

void set_update_scalars(device &target, const program &program, const update_scalars &values) {
  target.set_scalar(program.learning_rate_offset, values.learning_rate);
  target.set_scalar(program.step_offset, static_cast<double>(values.updates));
  target.set_scalar(program.gradient_scale_offset, 1.0 / static_cast<double>(values.micro_batches));
  auto limit = [](double most) { return most > 0 ? most : INFINITY; };
  target.set_scalar(program.clip_norm_offset, limit(values.clip_norm));
  target.set_scalar(program.clip_value_offset, limit(values.clip_value));
  target.set_scalar(program.loss_limit_offset, values.loss_limit);
  if (program.loss_scale_offset >= 0)
    target.set_scalar(program.loss_scale_offset, values.loss_scale);
}

} // namespace trainc
