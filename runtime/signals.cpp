// SPDX-License-Identifier: Apache-2.0
//
// A thread of its own waits for signals, and no other gets them: oneDNN's products keep their stack
// pointer in memory of the heap for a while, where the frame of a handler would overwrite what lies
// below.
#include "runtime/signals.h"

#include "runtime/unfinished_file.h"

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <pthread.h>
#include <thread>

namespace trainc {
namespace {

std::atomic<int> pending_requests;

void set_disposition(int number, void (*disposition)(int)) {
  struct sigaction action = {};
  action.sa_handler = disposition;
  sigaction(number, &action, nullptr);
}

bool is_ignored(int number) {
  struct sigaction action = {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

sigset_t set_of(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

// The next one of this number has its usual meaning: it ends the process.
void hear_once(int number, sigset_t &heard) {
  sigdelset(&heard, number);
  sigset_t usual = set_of(number);
  pthread_sigmask(SIG_UNBLOCK, &usual, nullptr);
}

void take_requests(sigset_t heard) {
  for (;;) {
    int number = 0;
    if (sigwait(&heard, &number) != 0)
      continue;
    request(number == SIGUSR1 ? checkpoint_request : stop_request);
    if (number != SIGUSR1)
      hear_once(number, heard);
  }
}

void end_without_unfinished_files(sigset_t heard) {
  int number = 0;
  while (sigwait(&heard, &number) != 0) {
  }
  remove_unfinished_files();
  hear_once(number, heard);
  raise(number);
}

} // namespace

void watch_signals(bool requests) {
  for (int number : {SIGXFSZ, SIGPIPE})
    set_disposition(number, SIG_IGN);
  sigset_t heard;
  sigemptyset(&heard);
  for (int number : {requests ? SIGUSR1 : SIGHUP, SIGINT, SIGTERM}) {
    if (!requests && is_ignored(number))
      continue;
    sigaddset(&heard, number);
    set_disposition(number, SIG_DFL);
  }
  pthread_sigmask(SIG_BLOCK, &heard, nullptr);
  std::thread thread(requests ? take_requests : end_without_unfinished_files, heard);
  pthread_setname_np(thread.native_handle(), "signals");
  thread.detach();
}

void request(signal_request what) { pending_requests.fetch_or(what); }

int take_signal_requests() { return pending_requests.exchange(no_request); }

} // namespace trainc
