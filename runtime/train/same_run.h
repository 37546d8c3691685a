// SPDX-License-Identifier: Apache-2.0
//
// Compares a run that goes on with what it was. A branch (`--run NEW --resume PATH`) is compared,
// too, where the table says so. Each row is a function below; what options say is compared where
// they are read (options/run_configuration.h).
//
// clang-format off
//   compared                 with               where it differs
//   graph, loss, frozen      the checkpoint     refused; of a branch it is said
//   weights
//   file and names           the configuration  refused while no checkpoint is there, else said
//   batches of a step        the configuration  shared out among the ranks there are, or refused
//   seed                     the checkpoint     refused
//   choice and order of      both               refused, or they begin anew with --new-data
//   samples
//   contents of the data     the configuration  refused, or likewise
//   validation data          the configuration  refused, unless they are named again
//   scale of the loss        the configuration  the option counts, else the checkpoint
//   length of the schedule   the configuration  said, with the rates of both
//   lines of the log         the checkpoint     said
// clang-format on
#pragma once

#include "runtime/options/schedule_rate.h"
#include "runtime/run/step_log.h"
#include "runtime/train/run_plan.h"

namespace trainc {

// Each throws `failure` where it refuses. `hold_to`, `find_layout`, `find_position`,
// `find_loss_scale` and `check_run_data` write what they find into the plan; the others check or
// warn.
void compare_computation(const run &run, const run_plan &plan);
// Notes what the run begins with. One that began before begins with the same again.
void hold_to(run_plan &plan, const run_origin &before);
void warn_of_other_parameters(const run &run, const run_plan &plan, const run_origin &before);
void find_layout(const run &run, run_plan &plan);
void find_position(const run &run, run_plan &plan, const loader &data);
void find_loss_scale(const run &run, run_plan &plan);

// Whether the data are those of the run that goes on. Collective. Other validation data make a new
// best evaluation.
void check_run_data(run &run, run_plan &plan, const run_sources &sources);

// Of the first rank, once the run can begin.
void warn_of_rate(const run &run, const run_plan &plan, const rate_schedule &schedule,
                  const loader &data);
void warn_of_log(const run &run, const run_plan &plan, const step_log &log);

} // namespace trainc
