// SPDX-License-Identifier: Apache-2.0
//
// A moving average of the parameters beside them, one more state of any optimizer: the
// arithmetic of torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn, which begins as a
// copy of the parameters after the first update.
#pragma once

#include "dialects/train/optimizer.h"

namespace trainc::train {

/// The state, and the hyperparameter that is its decay.
constexpr const char *kAverage = "ema";

Optimizer withParameterAverage(Optimizer optimizer);

} // namespace trainc::train
