// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter 2019, algorithm 2) with the arithmetic of
// torch.optim.AdamW, `amsgrad` off.
#include "dialects/train/adam.h"

using namespace mlir;

namespace trainc::train {

static const OptimizerRegistration adamwRegistration({
    "adamw",
    "AdamW with decoupled weight decay (Loshchilov and Hutter 2019)",
    {Hyperparameter{"beta1", 0.9, "decay rate of the first moment"}.below(1),
     Hyperparameter{"beta2", 0.999, "decay rate of the second moment"}.below(1),
     {"eps", 1e-8, "added to the root of the second moment"},
     {"weight_decay", 1e-2, "decoupled weight decay of the parameters that decay"}},
    {"exp_avg", "exp_avg_sq"},
    adamwUpdate,
    /*stateOf=*/{},
    /*squares=*/{false, true},
});

} // namespace trainc::train
