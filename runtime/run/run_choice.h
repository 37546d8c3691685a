// SPDX-License-Identifier: Apache-2.0
//
// Which run a command goes on with, begins or reads: by --resume, --run, --checkpoint and the names
// of folders, `runs/NAME-0001`. Looks at the file system, changes nothing.
#pragma once

#include "runtime/options/options.h"
#include "runtime/program.h"

#include <string>

namespace trainc {

// Absolute, without a slash at its end; empty stays empty.
std::string whole_path(const std::string &path);

// Runs of this model below `runs` of the working directory, by number.
std::string newest_run(const program &program); // that began; empty: there is none
std::string next_run(const program &program);   // a folder that is not there yet

// Whether somebody's work is in the folder: a checkpoint or a line of the log.
bool holds_run(const std::string &folder);

// What --resume, --run and --overwrite of `train` come to.
struct run_choice {
  std::string folder;     // of the run that goes on or begins; empty: the next free one
  std::string checkpoint; // "latest" of `folder`, or a path; empty: from the beginning
  std::string source;     // the run that the checkpoint belongs to; empty: unknown
  std::string configuration_of_host = {}; // trainer_options
  // In its own folder; else a new run begins, with or without a checkpoint's values.
  bool goes_on() const { return !checkpoint.empty() && !source.empty() && source == folder; }
  // Of the run that goes on; empty where there is none.
  std::string configuration() const;
};

// Whether the run has had a checkpoint, which may be out of sight now.
bool has_saved(const std::string &folder);

// Throws `failure` where --resume finds no run.
run_choice choose_run(const program &program, const trainer_options &options);

// Whether --checkpoint is a word for one of the run: latest, best or step-N. Without --run a folder
// of the last one's name goes before.
bool is_checkpoint_of_run(const trainer_options &options);

// The run whose parameters --checkpoint means, for commands that only read: of such a word --run,
// else the newest; of a path the one around it. Throws `failure` (exit_checkpoint) where there is
// none.
std::string latest_run_to_read(const program &program, const trainer_options &options);

// Its configuration; empty where there is none.
std::string configuration_to_read(const program &program, const trainer_options &options);

// What to say of a folder whose configuration is missing: a run that can go on as soon as somebody
// says its options again.
std::string without_configuration(const std::string &folder);

} // namespace trainc
