// SPDX-License-Identifier: Apache-2.0
//
// A thread of its own waits for signals, and no other gets them: oneDNN's products keep their stack
// pointer in memory of the heap for a while, where the frame of a handler would overwrite what lies
// below.
#include "runtime/process/signals.h"

#include "runtime/process/clock.h"
#include "runtime/process/last_words.h"
#include "runtime/process/unfinished_file.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <initializer_list>
#include <pthread.h>
#include <thread>

namespace trainc {
namespace {

// Launchers and schedulers send one wish several times, to a process and its group.
constexpr double seconds_of_one_wish = 2;

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

// As the signal would have without us.
void end_by(int number) {
  set_disposition(number, SIG_DFL);
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, number);
  pthread_sigmask(SIG_UNBLOCK, &usual, nullptr);
  raise(number);
}

void take_requests(sigset_t heard) {
  double first_seconds = INFINITY;
  for (;;) {
    int number = 0;
    if (sigwait(&heard, &number) != 0)
      continue;
    if (number != SIGUSR1 && seconds_now() - first_seconds > seconds_of_one_wish) {
      say_last_words(128 + number, "a second signal, which ends the process at once");
      end_by(number);
    }
    request(number == SIGUSR1 ? checkpoint_request : stop_request);
    if (number != SIGUSR1)
      first_seconds = std::min(first_seconds, seconds_now());
  }
}

void end_without_unfinished_files(sigset_t heard) {
  int number = 0;
  while (sigwait(&heard, &number) != 0) {
  }
  remove_unfinished_files();
  end_by(number);
}

// A thread that was there before us, of a library that is preloaded, hears signals too.
pthread_t listener;
void pass_on(int number) { pthread_kill(listener, number); }

} // namespace

void watch_signals(bool requests) {
  for (int number : {SIGXFSZ, SIGPIPE})
    set_disposition(number, SIG_IGN);
  sigset_t heard;
  sigemptyset(&heard);
  for (int number : {SIGUSR1, SIGHUP, SIGINT, SIGTERM}) {
    const bool stays_ignored = (number == SIGHUP || !requests) && is_ignored(number);
    if (number == SIGUSR1 ? requests : !stays_ignored)
      sigaddset(&heard, number);
  }
  pthread_sigmask(SIG_BLOCK, &heard, nullptr);
  std::thread thread(requests ? take_requests : end_without_unfinished_files, heard);
  listener = thread.native_handle();
  pthread_setname_np(listener, "signals");
  thread.detach();
  for (int number : {SIGUSR1, SIGHUP, SIGINT, SIGTERM})
    if (sigismember(&heard, number))
      set_disposition(number, pass_on);
}

void request(signal_request what) { pending_requests.fetch_or(what); }

int take_signal_requests() { return pending_requests.exchange(no_request); }

bool has_signal_requests() { return pending_requests.load() != no_request; }

} // namespace trainc
