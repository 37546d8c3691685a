// SPDX-License-Identifier: Apache-2.0
//
// A list that signal handlers read: who changes it holds a lock with all signals blocked, so that a
// handler never waits for the thread that it interrupts.
#include "runtime/unfinished_file.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

namespace trainc {
namespace {

std::atomic_flag taken = ATOMIC_FLAG_INIT;
unfinished_file *first = nullptr;

void take_list() {
  while (taken.test_and_set(std::memory_order_acquire)) {
  }
}

class list_access {
public:
  list_access() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    take_list();
  }
  ~list_access() {
    taken.clear(std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  list_access(const list_access &) = delete;
  list_access &operator=(const list_access &) = delete;

private:
  sigset_t before_;
};

} // namespace

unfinished_file::unfinished_file(std::string path) : path_(std::move(path)) {
  list_access access;
  next_ = first;
  if (next_)
    next_->previous_ = this;
  first = this;
}

unfinished_file::~unfinished_file() {
  list_access access;
  (previous_ ? previous_->next_ : first) = next_;
  if (next_)
    next_->previous_ = previous_;
}

// Nobody gets the list again. The signal has its usual meaning by now (SA_RESETHAND) and comes when
// this returns.
void remove_unfinished_files(int signal) {
  take_list();
  for (const unfinished_file *file = first; file; file = file->next_)
    ::unlink(file->path_.c_str());
  raise(signal);
}

void remove_unfinished_files_on_signals() {
  for (int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL)
      continue;
    action.sa_handler = remove_unfinished_files;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

} // namespace trainc
