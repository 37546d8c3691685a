// SPDX-License-Identifier: Apache-2.0
//
// A run has a folder, `runs/NAME-0001` unless --run says another, with the files of run_files.h.
// One run has it: a second one is refused while it runs, and afterwards unless it
// resumes or overwrites.
#pragma once

#include "runtime/data/input_files.h"
#include "runtime/data/loader.h"
#include "runtime/files/file_operations.h"
#include "runtime/options/option_table.h"
#include "runtime/options/run_configuration.h"

#include <optional>
#include <string>
#include <vector>

namespace trainc {

inline std::string configuration_of(const std::string &run) { return run + "/configuration.json"; }
inline std::string log_of(const std::string &run) { return run + "/log.jsonl"; }
inline std::string checkpoints_of(const std::string &run) { return run + "/checkpoints"; }

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
  // In its own folder; else a new run begins, with or without a checkpoint's values.
  bool goes_on() const { return !checkpoint.empty() && !source.empty() && source == folder; }
  // Of the run that goes on; empty where there is none.
  std::string configuration() const;
};

// Whether the run has had a checkpoint, which may be out of sight now.
bool has_saved(const std::string &folder);

// Looks at the file system, changes nothing. Throws `failure` where --resume finds no run.
run_choice choose_run(const program &program, const trainer_options &options);

// Whether --checkpoint is a word for one of the run: latest, best or step-N. Without --run a folder
// of the last one's name goes before.
bool is_checkpoint_of_run(const trainer_options &options);

// The run whose parameters --checkpoint means, for commands that only read: of such a word --run,
// else the newest; of a path the one around it. Empty where there is none, or nobody can say.
std::string run_to_read(const program &program, const trainer_options &options);

// The same of a word. Throws `failure` (exit_checkpoint) where there is none.
std::string latest_run_to_read(const program &program, const trainer_options &options);

// Its configuration; empty where there is none.
std::string configuration_to_read(const program &program, const trainer_options &options);

// Fills options that the command line leaves open with those of the file `configuration`
// (--config FILE, or what a resumed run has). Returns what the command line changes:
// "--learning-rate 0.5, was 0.001". Throws `failure` (exit_usage) with every problem.
std::vector<std::string> restore_options(const program &program, const std::string &configuration,
                                         const option_table &table, trainer_options &options);

// Refuses, as `failure` (exit_usage), a file of options (--config) that says otherwise than the
// run which goes on, where the command line says neither. Returns what is said of others.
std::vector<std::string> check_agrees(const program &program, const std::string &file,
                                      const std::string &configuration, const option_table &table,
                                      const trainer_options &options);

// The options that `configuration` says, defaults for others.
trainer_options kept_options(const program &program, const std::string &configuration,
                             const option_table &table);

// Refuses, as `failure`, a folder that holds a run, unless `takes_over`, and one that cannot be
// made or written. Changes nothing.
void check_run_folder(const std::string &path, bool takes_over);

// Refuses, as `failure`, what stands where samples of text go and is not a folder.
void check_sample_folder(const std::string &folder);

// Refuses, as `failure`, to give up what is in the folder where a file of the new run lies in it.
void check_given_up(const std::string &folder, const std::vector<input_file_name> &needed);

// Somebody else has the lock of a folder.
class folder_in_use : public failure {
public:
  using failure::failure;
};

// The folder of the run that trains, locked against a second one for the life of the object.
class run_folder {
public:
  // Makes and locks the folder; refuses what check_run_folder does. To be called on the first rank
  // alone, as all that follows; throws `failure`.
  run_folder(std::string path, bool takes_over, file_operations &files = real_file_operations());
  // Without a configuration no run began: a folder that was made for it goes.
  ~run_folder();
  run_folder(const run_folder &) = delete;
  run_folder &operator=(const run_folder &) = delete;

  // Removes the run that is given up.
  void clear();
  // Removes samples of text of steps after `last`, which are taken again, and makes room where
  // the run `writes` some.
  void begin_samples(int64_t last, bool writes);
  void write_configuration(const program &program, const option_table &table,
                           const trainer_options &options, const run_facts &facts);
  // A checkpoint is complete. What fails is tried again with the next one. Allocates nothing.
  void note_saved();
  // Makes a file of the run's bookkeeping again that somebody has removed while the run goes on.
  // Its path; empty where all are there. Throws `failure`.
  std::string bring_back();
  // Whether a second run would be kept out: not every file system has locks.
  bool is_lockable() const { return is_lockable_; }
  // Whether the path still leads to this folder, which somebody may move or remove.
  bool is_there() const;

private:
  void make();
  void lock();
  void lock_again();
  bool has_lock() const;
  void leave();

  void publish_configuration() const;

  std::string path_, lock_path_, configuration_path_, saved_; // the mark of note_saved
  std::string configuration_;                                 // the text of the file
  bool is_locked_ = false;    // by this run: nobody else may remove anything
  bool is_lock_made_ = false; // for a run that has not begun
  bool is_noted_ = false;     // and that it is durable
  bool is_lockable_ = true;
  file_operations &files_;
  std::vector<std::string> made_; // and given to no run yet, the outermost first
  int lock_ = -1, folder_ = -1;
};

// Compares the data of a run, for training or for validation, with those that its configuration
// names. Throws `failure` (exit_data) that names the first difference.
enum class data_use { training, validation };
void check_same_data(const std::string &configuration, data_use use,
                     const std::vector<data_identity> &data);

// Which samples are trained on, and in which order, is the run's: throws `failure` (exit_usage)
// where that would change.
void check_same_choice(const sample_choice &before, const sample_choice &now);
sample_choice choice_of(const trainer_options &options);

} // namespace trainc
