// SPDX-License-Identifier: Apache-2.0
//
// What a trainer's exit status means. The one list: `--help` prints it and
// scripts may rely on it.
#pragma once

namespace trainc {

enum exit_code : int {
  exit_success = 0,
  exit_internal = 1,
  exit_usage = 2,
  exit_data = 3,
  exit_checkpoint = 4,
  exit_disk = 5,
  exit_machine = 6,
  exit_diverged = 7,
  exit_stalled = 8,
  exit_stopped = 9,
};

struct exit_code_row {
  exit_code code;
  const char *meaning;
};

constexpr exit_code_row exit_code_table[] = {
    {exit_success, "done"},
    {exit_internal, "internal error"},
    {exit_usage,
     "bad command line, the folder of the run is another run's, or one rank's program or "
     "options are not another's"},
    {exit_data,
     "bad input data: dtype, shape, truncated file, token id or computed index out of range"},
    {exit_checkpoint, "checkpoint missing, damaged or of another model"},
    {exit_disk, "a result could not be written: disk full, no permission"},
    {exit_machine,
     "this machine cannot run the trainer: instruction set, memory, MPI and its launcher"},
    {exit_diverged, "the loss or the gradient norm is no longer finite"},
    {exit_stalled, "a rank stalled or died and the others would have waited for it"},
    {exit_stopped, "training was stopped before its last step, by SIGTERM, SIGINT, SIGHUP or "
                   "--max-time; its checkpoint is written"},
};

} // namespace trainc
