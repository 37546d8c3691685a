// SPDX-License-Identifier: Apache-2.0
//
// Requests that arrive as signals: SIGUSR1 asks for a checkpoint; SIGTERM, SIGINT and SIGHUP for a
// checkpoint and the end.
#pragma once

namespace trainc {

// Five are the trainer's own: the time between two checkpoints is over, one is still being
// written, the time of --max-time is over, the run's folder is gone, the time between two
// evaluations is over.
enum signal_request : int {
  no_request = 0,
  checkpoint_request = 1,
  stop_request = 2,
  period_request = 4,
  writing_request = 8,
  time_request = 16,
  gone_request = 32,
  evaluation_request = 64
};

// Hears signals from now on, until the process ends. Must run before any other thread starts that
// computes, since threads inherit what they do not hear. Signals are requests only where `requests`
// are looked for, else SIGHUP, SIGINT and SIGTERM end the process as usual, without what is half
// written (unfinished_file.h). One that is ignored at the start (nohup, a job of a shell in the
// background) stays so, except requests of SIGINT and SIGTERM. SIGXFSZ and SIGPIPE are ignored, so
// that a file-size limit is an error of write like a full disk. A second SIGTERM, SIGINT or SIGHUP
// ends the process at once, unless it comes within two seconds of the first.
void watch_signals(bool requests);

// As if a signal had asked for it.
void request(signal_request what);

// The union of requests since the last call, and whether there are some.
int take_signal_requests();
bool has_signal_requests();

} // namespace trainc
