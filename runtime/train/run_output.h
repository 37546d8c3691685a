// SPDX-License-Identifier: Apache-2.0
//
// What a run says while it trains: its progress for people, its log for programs, and warnings for
// both, which have lines of their own.
#pragma once

#include "runtime/run/progress.h"
#include "runtime/run/run.h"
#include "runtime/run/run_folder.h"
#include "runtime/run/step_log.h"
#include "runtime/step/memory_watch.h"
#include "runtime/train/run_events.h"

#include <optional>
#include <set>
#include <string>

namespace trainc {

class run_output {
public:
  // Steps first + 1 to last will follow.
  run_output(run &run, int64_t first, int64_t last)
      : shown(run.options.no_progress || !run.is_first(), first, last, run.options.display_every),
        current_step(first), run_(run) {}
  ~run_output() { run_.hear_warnings(nullptr); }
  run_output(const run_output &) = delete;
  run_output &operator=(const run_output &) = delete;

  // The log at `path` (step_log), with all warnings of the run.
  void open_log(const std::string &path, int64_t first);

  // From the first rank alone.
  void warn(const std::string &text) {
    shown.finish();
    run_.warn(text);
  }

  // From this rank, where another has no part in what the text is about.
  void warn_of_rank(const std::string &text) {
    shown.finish();
    run_.warn_here(text);
  }

  // Warns, once each, of a line of the log of the run in `folder` that was lost, of an event that
  // was, and of a file system that does not sync folders. Allocates nothing where all is well.
  void look_at_files(const std::string &folder);

  // Collective. What the ranks' memory had in the step, for people, in the log and for TensorBoard.
  void show_memory(int64_t step, memory_watch &watch);

  progress shown;
  std::optional<step_log> log; // once the run has begun
  int64_t current_step;        // or the last one
  run_events events;

private:
  run &run_;
  bool is_sync_said_ = false, is_loss_said_ = false;
};

class folder_watch {
public:
  // `folder` is null on ranks that keep none, and in a dry run.
  folder_watch(run_folder *folder, run_output &output) : folder_(folder), output_(output) {}

  // Between steps, and in the midst of what may take hours: from time to time it looks whether the
  // folder is there, else it requests an end (gone_request), and brings files of the bookkeeping
  // back.
  void look();
  // The same now, before a run ends.
  void look_at_the_end();
  // After a gone_request, which all ranks hear of. Throws `failure` (exit_disk).
  [[noreturn]] void give_up() const;

  void note_saved() {
    if (folder_)
      folder_->note_saved();
  }

private:
  void look_at_bookkeeping();

  run_folder *folder_;
  run_output &output_;
  double looked_seconds_ = 0;
  bool is_gone_ = false, is_taken_ = false; // the latter by another run
  std::set<std::string> said_;              // problems
};

} // namespace trainc
