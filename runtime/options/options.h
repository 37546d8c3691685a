// SPDX-License-Identifier: Apache-2.0
//
// What a command line says, as values. The table (trainer_rows.cpp) has a row for each: its name,
// what it means and which commands take it; what stands here is the default.
#pragma once

#include "runtime/accumulation.h"
#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/checkpoint/loss_scale.h"
#include "runtime/data/loader.h"
#include "runtime/options/schedule_rate.h"

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainc {

struct command_row;

// How ranks exchange gradients: automatic is memory that the ranks of one host share, else
// messages.
enum class communication_kind { automatic, shared_memory, messages };

// When ranks exchange gradients: beside the backward pass, with a thread more, or after it;
// automatic is beside it where cores allow.
enum class exchange_kind { automatic, overlapped, behind };

enum class product_math { ieee, tf32 };

// What ranks of one host keep once instead of each: parameters and optimizer state; gradients too.
// On CUDA, of whatever hosts: of the state each rank keeps its part alone.
enum class shard_kind { none, optimizer, gradients };

constexpr int64_t most_steps_of_range = 1000;

// Whether hosts see one folder of a run, or have one each.
enum class folder_kind { automatic, shared, per_host };

// Training steps in a row.
struct step_range {
  int64_t begin = 1, end = 1; // the step `end` is not one of them

  bool has(int64_t step) const { return begin <= step && step < end; }
};

struct trainer_options {
  const command_row *command = nullptr;
  std::string action;                             // of the command: `list`, `verify`, ...
  std::vector<std::string> words;                 // of the whole command line, with the program
  bool wants_help = false, wants_version = false; // which is all the help then
  std::string help_of;                            // a group of options, or all
  std::set<std::string> given;                    // options that the command line has
  std::set<std::string> written; // others that a person wrote into a configuration: no defaults
  // Whether somebody asks for what has no effect where `reader` is as it is. The command line may
  // change the reader of what is written.
  bool asks_for(const std::string &option, const std::string &reader) const {
    return given.count(option) || (written.count(option) && !given.count(reader));
  }

  // ---- data
  std::vector<std::string> data;       // NAME=FILE
  std::vector<std::string> constant;   // NAME=FILE
  std::vector<std::string> tokens;     // FILE, or FILE:WEIGHT all of them
  std::optional<file_type> token_type; // of files that do not say; nothing: bytes
  std::optional<int64_t> label_shift;  // of labels that the model's own loss takes; nothing: ask
  double holdout = 0;                  // part of the samples
  std::vector<std::string> validation_data;   // NAME=FILE
  std::vector<std::string> validation_tokens; // FILE
  int64_t validation_batches = 0;             // 0: all
  int64_t overfit = 0;                        // batches; 0: all
  leftovers rest = leftovers::drop;
  std::string augment; // of pictures in training: augmentation::parse
  bool no_shuffle = false;
  bool check_data = false;
  uint64_t seed = 0;

  // ---- training
  std::optional<int64_t> steps; // these or epochs
  std::optional<double> epochs;
  std::optional<double> max_minutes;
  std::string initialise;          // file or folder
  std::vector<std::string> rename; // PATTERN=TEXT, of its names
  int64_t micro_batches = 1;
  accumulation accumulated = accumulation::pairwise;  // gradients of micro-batches
  double clip_norm = INFINITY, clip_value = INFINITY; // 0: no clipping either
  bool mean_per_batch = false;
  int64_t nonfinite_limit = 10; // steps in a row
  double spike_limit = 0;       // standard deviations; 0: no loss is a spike
  double loss_scale = 65536;    // the first, of programs that have one
  loss_scale_rules scale_rules;
  // Of the optimizer, in the program's order; nothing: that of the one it follows.
  std::vector<std::optional<double>> hyperparameters;

  // ---- learning rate
  double learning_rate = 0.001;
  schedule_kind schedule = schedule_kind::constant;
  int64_t warmup_steps = 0;
  double final_learning_rate = 0;
  std::optional<int64_t> schedule_steps; // nothing: the run's
  double schedule_power = 1;
  std::optional<int64_t> cycle_steps;
  double cycle_factor = 1;
  std::optional<int64_t> decay_steps, decay_every;
  std::optional<double> decay_factor;

  // ---- the run and its checkpoints
  std::string run; // folder
  // Of the run that goes on, a copy of that of another host, where this one's folder has none or an
  // older one (run/host_folders.h). No option.
  std::string configuration_of_host;
  bool dry_run = false;
  int64_t dry_run_steps = 1;
  int64_t memory_every = 0; // steps; 0: never
  std::string watch, dump;  // patterns of names of tensors
  int64_t watch_every = 1;
  std::string watch_folder;
  int64_t histograms_every = 0;            // steps; 0: never
  std::optional<step_range> profile_steps; // of which a trace is written
  std::string profile_file;
  bool overwrite = false;
  std::string config; // file
  std::string resume; // latest, auto or a path
  bool new_data = false;
  bool no_checkpoints = false;
  folder_kind checkpoints = folder_kind::automatic;
  bool no_background = false;
  period checkpoint_every = {period::minutes, 10};
  keep_policy keep;
  bool average = false;              // of the parameters, in place of them
  std::string checkpoint = "latest"; // best, step-N, initial or a path
  std::string frozen_data;           // folder; empty: where the compiler found them

  // ---- what commands compute and write
  period evaluate_every = {}; // 0: never
  int64_t patience = 0;       // evaluations; 0: endless
  int64_t sample_every = 0;   // steps; 0: never
  int64_t batches = 0;        // 0: all
  int64_t batch = 0;          // which
  int64_t step = 1;           // which
  int64_t measured_steps = 10;
  std::string output; // file
  std::string trace;  // file of `profile`
  bool external_data = false;
  std::string state_dict, optimizer_state; // files
  std::string adapter;                     // folder
  std::string prompt = "\n";
  int64_t length = 200; // bytes
  double temperature = 1;
  int64_t top_k = 0; // 0: all
  bool memory_phases = false;
  bool json = false;

  // ---- the machine
  double hang_timeout = 60; // seconds; 0: for ever
  bool no_progress = false;
  int64_t display_every = 0; // steps; 0: by time
  int64_t log_every = 1;     // steps
  bool no_tensorboard = false;
  bool verbose = false;
  std::optional<int64_t> threads;
  communication_kind communication = {};
  exchange_kind exchange = {};
  shard_kind shard = shard_kind::none;
  product_math math = product_math::ieee;
  bool no_tuning = false;
  bool no_epilogues = false;
  bool no_cudnn = false;
  std::string product_choices; // file; `none`: nowhere
};

} // namespace trainc
