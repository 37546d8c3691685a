// SPDX-License-Identifier: Apache-2.0
//
// Requests that arrive as signals: SIGUSR1 asks for a checkpoint, SIGTERM and
// SIGINT for a checkpoint and the end.
#pragma once

namespace trainc {

// Two are the trainer's own: the time between two checkpoints is over, one is still being written.
enum signal_request : int {
  no_request = 0,
  checkpoint_request = 1,
  stop_request = 2,
  period_request = 4,
  writing_request = 8
};

// Hears signals from now on, until the process ends. Must run before any other thread starts, since
// threads inherit what they do not hear. Signals are requests only where `requests` are looked for,
// else SIGHUP, SIGINT and SIGTERM, unless they are ignored, end the process as usual, without what
// is half written (unfinished_file.h). SIGXFSZ and SIGPIPE are ignored, so that a file-size limit
// is an error of write like a full disk. A second SIGTERM or SIGINT ends the process at once.
void watch_signals(bool requests);

// As if a signal had asked for it.
void request(signal_request what);

// The union of requests since the last call.
int take_signal_requests();

} // namespace trainc
