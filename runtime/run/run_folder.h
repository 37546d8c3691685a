// SPDX-License-Identifier: Apache-2.0
//
// The folder of a run, with the files of run_files.h. One run has it: a second one is refused while
// it runs, and afterwards unless it resumes or overwrites.
#pragma once

#include "runtime/files/file_operations.h"
#include "runtime/run/input_files.h"

#include <string>
#include <vector>

namespace trainc {

// Refuses, as `failure`, a folder that holds a run, unless `takes_over`, and one that cannot be
// made or written. Changes nothing.
void check_run_folder(const std::string &path, bool takes_over);

// Refuses, as `failure`, what stands where a run has a folder, of samples of text or event files,
// and is none.
void check_folder_of_run(const std::string &path);

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
  // Makes and locks the folder; refuses what check_run_folder does. To be called on a rank that
  // keeps a folder (checkpoint/folder_groups.h), as all that follows; throws `failure`.
  run_folder(std::string path, bool takes_over, file_operations &files = real_file_operations());
  // Without a configuration no run began: a folder that was made for it goes.
  ~run_folder();
  run_folder(const run_folder &) = delete;
  run_folder &operator=(const run_folder &) = delete;

  const std::string &path() const { return path_; }
  // Removes the run that is given up.
  void clear();
  // Removes samples of text of steps after `last`, which are taken again, and makes room where
  // the run `writes` some.
  void begin_samples(int64_t last, bool writes);
  // The file of this text (configuration_text).
  void write_configuration(const std::string &text);
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

} // namespace trainc
