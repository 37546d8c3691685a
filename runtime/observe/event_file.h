// SPDX-License-Identifier: Apache-2.0
//
// The event files of a run, for TensorBoard. Each start of the run has a file of its own, since a
// TensorBoard that is open goes on to files with later names; those of before are cut.
#pragma once

#include "runtime/files/appended_file.h"
#include "runtime/files/file_operations.h"
#include "runtime/observe/event_record.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

// Those that runs wrote into the folder, in their order. Of other files none.
std::vector<std::string> event_files_in(const std::string &folder);

// Drops all of steps after `step`, which are taken again, and what follows a damaged record: each
// file ends where the first of these is. One without values is removed; -1: all are. Returns the
// tags of the first values of that very step's records. Throws `failure` (exit_disk).
std::vector<std::string> cut_events(const std::string &folder, int64_t step,
                                    file_operations &files = real_file_operations());

class event_file {
public:
  // A new one in the folder, which it makes. Its name is durable then. `largest`: bytes of a record
  // that allocates nothing. Throws `failure` (exit_disk).
  event_file(const std::string &folder, size_t largest,
             file_operations &files = real_file_operations());

  const std::string &path() const { return path_; }
  // What is written next.
  event_record &record() { return record_; }
  void write();
  void look() { file_.look(); }
  int error() const { return file_.error(); } // an errno

private:
  std::string path_;
  appended_file file_;
  event_record record_;
};

// Seconds since 1970.
double wall_seconds();

} // namespace trainc
