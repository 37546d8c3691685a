// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/run_output.h"

#include "runtime/files/file_operations.h"
#include "runtime/files/run_files.h"

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

} // namespace trainc
