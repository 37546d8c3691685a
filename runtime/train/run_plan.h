// SPDX-License-Identifier: Apache-2.0
//
// What a training run is going to do: where it begins and ends, with which parameters and on which
// data. Decided before any memory is taken. The run's folder is made and locked by then, and its
// checkpoints are recovered; nothing else changes.
#pragma once

#include "runtime/checkpoint/folder_groups.h"
#include "runtime/run/run.h"
#include "runtime/run/run_choice.h"
#include "runtime/run/run_folder.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainc {

struct run_plan {
  run_choice choice;
  std::vector<std::string> keeping_hosts; // each with a folder of the run
  std::optional<kept_run> before; // what the run that goes on, or is branched off from, says
  run_origin origin;
  checkpoint_info resumed;         // the checkpoint it begins with; no path: there is none
  bool has_own_checkpoint = false; // `resumed` is one of this run
  batch_layout layout;

  int64_t first = 0, last = 0;  // steps first + 1 ... last are taken
  int64_t run_last = 0;         // of the run; a dry run ends before
  int64_t batches_taken = 0;    // before step first + 1, by all ranks
  sample_order order;           // that these are of
  int64_t held_out_batches = 0; // of an evaluation
  best_evaluation best;         // until here
  loss_scale scale;             // of the first step, in programs that have one

  bool is_at_last_step() const { return !resumed.path.empty() && last <= first; }
};

// What a run holds from its planning on.
struct run_sources {
  std::optional<folder_groups> groups; // of the run's folder
  std::optional<run_folder> folder;    // locked; of a rank that keeps one, without --dry-run
  std::optional<loader> data;
  std::optional<loader> validation; // where held-out samples have files of their own
  // Those of an evaluation, and where they are.
  loader &held_out() { return validation ? *validation : *data; }
  const loader &held_out() const { return validation ? *validation : *data; }
  data_part held_out_part() const { return validation ? data_part::all : data_part::held_out; }
};

// Collective, throws `failure`. The run's folder is made and locked, and a checkpoint that a kill
// left half done is completed or removed; nothing else changes.
run_plan plan_run(run &run, run_sources &sources);

// The last step by --steps, or by --epochs from the plan's first one on.
int64_t last_step_of(const trainer_options &options, const run_plan &plan, const loader &data);

bool evaluates(const trainer_options &options);

// Rows of the table that a run begins with.
table_rows describe_data(const trainer_options &options, const run_plan &plan,
                         const run_sources &sources);

} // namespace trainc
