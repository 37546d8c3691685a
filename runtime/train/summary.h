// SPDX-License-Identifier: Apache-2.0
//
// What a run says at its end, on the screen and in its log.
#pragma once

#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/train/run_output.h"
#include "runtime/train/run_plan.h"

namespace trainc {

struct run_end {
  int64_t steps = 0;            // that this start took
  int64_t last_step = 0;        // of the run
  int64_t skipped = 0;          // likewise
  int64_t batches_per_step = 1; // of all ranks
  int requests = 0;             // for which it ended before its last step (signal_request bits)
  bool saves = false;
  best_evaluation best;
  double seconds = 0;    // since it began
  double data = 0;       // of them, waiting for data in steps
  double exchanging = 0; // in evaluations and samples
  double loss_scale = 0; // of the next step; 0: there is none
};

// Prints and logs it, of the first rank. Returns the exit code of every rank.
int summarize(run &run, const run_plan &plan, run_output &output, const run_end &end);

// Logs an end by `error`, of the first rank.
void log_failure(const run &run, run_output &output, const run_end &end, const failure &error);

} // namespace trainc
