// SPDX-License-Identifier: Apache-2.0
//
// Signal handlers that only set a flag, which the loop reads between steps.
#include "runtime/signals.h"

#include "runtime/unfinished_file.h"

#include <atomic>
#include <csignal>

namespace trainc {
namespace {

std::atomic<int> requests;

void on_signal(int number) {
  requests.fetch_or(number == SIGUSR1 ? checkpoint_request : stop_request);
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

} // namespace

void watch_signals(bool requests) {
  if (requests) {
    handle(SIGUSR1, on_signal, SA_RESTART);
    handle(SIGTERM, on_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
    handle(SIGINT, on_signal, SA_RESTART | static_cast<int>(SA_RESETHAND));
  } else {
    remove_unfinished_files_on_signals();
  }
  handle(SIGXFSZ, SIG_IGN, 0);
  handle(SIGPIPE, SIG_IGN, 0);
}

void request(signal_request what) { requests.fetch_or(what); }

int take_signal_requests() { return requests.exchange(no_request); }

} // namespace trainc
