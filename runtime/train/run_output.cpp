// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_output.h"

#include "runtime/failure.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/run_files.h"
#include "runtime/process/clock.h"
#include "runtime/process/signals.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace trainc {

void run_output::open_log(const std::string &path, int64_t first) {
  log.emplace(path, first);
  run_.hear_warnings([this](const std::string &text) { log->write_warning(current_step, text); });
}

void run_output::look_at_files(const std::string &folder) {
  if (!syncs_folders() && !is_sync_said_) {
    is_sync_said_ = true;
    warn(folder + ": the file system does not sync folders: a checkpoint may be lost with the "
                  "machine, not with the run\n  try: --run on another file system");
  }
  if (const std::string problem = events.take_problem(); !problem.empty())
    warn(problem);
  if (log->error() == 0 || is_loss_said_)
    return;
  is_loss_said_ = true;
  warn(log_of(folder) + ": a line could not be written: " + strerror(log->error()) +
       "; training goes on");
}

void run_output::show_memory(int64_t step, memory_watch &watch) {
  shown.finish();
  watch.gather([&](int rank, memory_phase phase, const named_bytes &row) {
    printf("rank-%d step %" PRId64 " memory (MiB) | %s\n", rank, step,
           memory_text(phase, row).c_str());
    log->write_memory(step, rank, name_of(phase), row);
    if (rank == 0)
      events.write_memory(step, name_of(phase), row);
  });
  fflush(stdout);
}

constexpr double look_seconds = 2; // between two looks

void folder_watch::look() {
  if (!folder_ || seconds_now() - looked_seconds_ < look_seconds)
    return;
  looked_seconds_ = seconds_now();
  output_.log->look();
  output_.events.look();
  is_gone_ = !folder_->is_there();
  if (is_gone_)
    request(gone_request);
  else
    look_at_bookkeeping();
}

void folder_watch::look_at_the_end() {
  if (folder_ && folder_->is_there())
    look_at_bookkeeping();
}

// Without it the run could not go on. What was gone and what cannot come back is said once: what
// fails is tried again and again.
void folder_watch::look_at_bookkeeping() {
  auto say = [&](const std::string &problem) {
    if (said_.insert(problem).second)
      output_.warn_of_rank(problem);
  };
  try {
    for (std::string made = folder_->bring_back(); !made.empty(); made = folder_->bring_back())
      say(made + ": was removed while the run went on, and is written again");
  } catch (const folder_in_use &) { // by a run that began after the lock was removed
    is_taken_ = true;
    request(gone_request);
  } catch (const failure &error) {
    say(error.message);
  }
}

void folder_watch::give_up() const {
  throw failure(exit_disk,
                !is_gone_ && !is_taken_ ? ""
                : is_taken_
                    ? folder_->path() + ": its .lock was removed, and another run has begun there"
                                        "\n  try: --resume CHECKPOINT --run DIR, elsewhere"
                    : folder_->path() +
                          ": was moved or removed while its run went on, which can keep "
                          "nothing any more\n  try: --resume latest where it is now, and to "
                          "leave the folder of a run where it is",
                /*everywhere=*/true);
}

} // namespace trainc
