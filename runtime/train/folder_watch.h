// SPDX-License-Identifier: Apache-2.0
//
// Whether the folder of a run that trains is still there and still its own.
#pragma once

#include "runtime/run/run_folder.h"
#include "runtime/train/run_output.h"

#include <set>
#include <string>

namespace trainc {

class folder_watch {
public:
  // `folder` is null on other ranks than the first, and in a dry run.
  folder_watch(run_folder *folder, std::string path, run_output &output)
      : folder_(folder), path_(std::move(path)), output_(output) {}

  // Between steps, and in the midst of what may take hours: from time to time it looks whether the
  // folder is there, else it requests an end (gone_request), and brings files of the bookkeeping
  // back.
  void look();
  // The same now, before a run ends.
  void look_at_the_end();
  // After a gone_request, which all ranks hear of. Throws `failure` (exit_disk).
  [[noreturn]] void give_up(bool is_first) const;

  void note_saved() {
    if (folder_)
      folder_->note_saved();
  }

private:
  void look_at_bookkeeping();

  run_folder *folder_;
  std::string path_;
  run_output &output_;
  double looked_seconds_ = 0;
  bool is_taken_ = false;      // by another run
  std::set<std::string> said_; // problems
};

} // namespace trainc
