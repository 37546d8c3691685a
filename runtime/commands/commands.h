// SPDX-License-Identifier: Apache-2.0
//
// What a trainer can be asked to do (`train` stands in runtime/train).
#pragma once

#include "runtime/run/run.h"

namespace trainc {

// The commands. Each returns an exit code.
int train(run &);
int evaluate(run &);
int gradients(run &);
int predict(run &);
int export_model(run &);
int generate(run &);
int checkpoints(run &);
int profile(run &);
int info(run &);

} // namespace trainc
