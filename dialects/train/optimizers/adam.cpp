// SPDX-License-Identifier: Apache-2.0
//
// Adam (Kingma and Ba 2015) with the arithmetic of torch.optim.Adam, `amsgrad` off: its weight
// decay is an L2 penalty.
#include "dialects/train/adam.h"

using namespace mlir;

namespace trainc::train {

static UpdateResult buildAdam(Update &update) {
  return adamUpdate(update, update.parameter, update.penalizedGradient());
}

static const OptimizerRegistration adamRegistration({
    "adam",
    "Adam, weight decay as an L2 penalty (Kingma and Ba 2015)",
    {Hyperparameter{"beta1", 0.9, "decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "decay rate of the second moment"}.below(1),
     {"eps", 1e-8, "added to the root of the second moment"},
     {"weight_decay", 0, "L2 penalty of the parameters that decay"}},
    {"exp_avg", "exp_avg_sq"},
    buildAdam,
    /*stateOf=*/{},
    /*squares=*/{false, true},
});

} // namespace trainc::train
