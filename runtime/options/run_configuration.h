// SPDX-License-Identifier: Apache-2.0
//
// What configuration.json says: of a run, which wrote it, or of whoever wrote options by hand. A
// person may have edited either, so every member is checked where the file is read.
#pragma once

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data_manifest.h"
#include "runtime/data/loader.h"
#include "runtime/options/trainer_table.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

// Whose values a run began with, where they are not the model's own. Absolute paths.
struct run_origin {
  std::string checkpoint; // of the run from which it branched off
  std::string parameters; // --initialise
  // Of the file, of a checkpoint that of its manifest, when the run began; nothing: it does not
  // say.
  std::optional<file_content> content = {};
  std::vector<std::string> renames = {}; // --rename, of its names
  // The file; empty where the run began with the model's own values.
  std::string file() const {
    return checkpoint.empty() ? parameters : checkpoint + "/manifest.json";
  }
};

// Who computes the batches of a step.
struct batch_layout {
  int64_t ranks = 1, micro_batches = 1; // of each rank
  int64_t batches() const { return ranks * micro_batches; }
};

struct run_configuration {
  std::string path, text;                  // of the file
  bool is_of_run = false;                  // a run wrote it, with all options
  std::string id;                          // of the run, as run_facts has it
  std::string last_start;                  // its date, as run_start has it
  std::string model, precision, optimizer; // empty: it does not say
  computed_from_parameters computed;
  int64_t ranks = 0;      // 0: it does not say
  int64_t data_order = 0; // sample_order::number; 0 where it does not say
  run_origin origin;
  // As they would stand on the command line; without a value there is none.
  std::map<std::string, std::vector<std::string>> options;
  std::optional<std::vector<data_identity>> data, validation; // nothing: it does not say

  // The value of an option; empty where there is none.
  std::string option(const std::string &name) const;
  // Nothing where ranks or micro-batches are not said.
  std::optional<batch_layout> layout() const;
};

// Throws `failure` (exit_usage) with every member that is not what it should be.
run_configuration read_configuration(const std::string &path);

// Whether a run wrote the file; false too where there is none, or none that could be read.
bool is_configuration_of_run(const std::string &path);

// When, where and by which command the run was started last: for people, no trainer reads it.
struct run_start {
  std::string date;   // of the first rank, in UTC
  std::string host;   // of the first rank
  std::string device; // with the threads of a rank
  std::vector<std::string> command;
};

// What a configuration says besides options.
struct run_facts {
  std::string id; // no other run's: when, where and by which process it began
  batch_layout layout;
  std::vector<data_identity> data, validation;
  int64_t data_order = 0; // sample_order::number
  uint64_t seed = 0;      // sample_order::seed, of a branch that of its checkpoint
  run_origin origin;
  run_start start;
};

// Refuses (exit_usage) what the file that a run writes could not say again: paths that are no
// UTF-8.
void check_can_be_kept(const trainer_table &table, const trainer_options &options);

// The file that a run writes.
std::string configuration_text(const program &program, const trainer_table &table,
                               const trainer_options &options, const run_facts &facts);

// Fills options that the command line leaves open with those of a configuration (--config FILE, or
// what a resumed run has). Returns what the command line changes:
// "--learning-rate 0.5, was 0.001". Throws `failure` (exit_usage) with every problem.
std::vector<std::string> restore_options(const program &program, const run_configuration &before,
                                         const trainer_table &table, trainer_options &options);

// Refuses, as `failure` (exit_usage), a file of options (--config) that says otherwise than the
// run which goes on, where the command line says neither. Returns what is said of others.
std::vector<std::string> check_agrees(const program &program, const std::string &file,
                                      const std::string &configuration, const trainer_table &table,
                                      const trainer_options &options);

// A run as its configuration says it is, defaults for what it does not say.
struct kept_run {
  run_configuration configuration;
  trainer_options options;
};
kept_run read_kept_run(const program &program, const std::string &configuration,
                       const trainer_table &table);

} // namespace trainc
