// SPDX-License-Identifier: Apache-2.0
//
// The signal that a parent's death can send (PR_SET_PDEATHSIG) reaches children alone: g++ would
// end, and what it runs, cc1plus, would go on. So a process of the group itself waits.
#include "compiler/process_group.h"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace trainc {

namespace {

std::atomic<pid_t> current = 0;

constexpr long kNanosecondsToEnd =
    200'000'000; // for removing temporary files, which g++ and ccache do

/// The guard: a copy of a process that may have had threads, so system calls alone.
[[noreturn]] void watch(int parent, const char *temporary) {
  setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  dup2(parent, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0); // locks and the ends of pipes are the parent's
  char none;
  while (read(STDIN_FILENO, &none, 1) < 0 && errno == EINTR) {
  }
  kill(0, SIGTERM);
  const timespec time = {0, kNanosecondsToEnd};
  nanosleep(&time, nullptr);
  rmdir(temporary);
  kill(0, SIGKILL); // this process too
  _exit(0);
}

} // namespace

ProcessGroup::ProcessGroup(const std::string &temporary) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return;
  guard = fork();
  if (guard == 0)
    watch(ends[0], temporary.c_str());
  close(ends[0]);
  alive = ends[1];
  if (guard < 0) {
    guard = 0;
    return;
  }
  setpgid(guard, guard); // whoever comes first
  current = guard;
}

ProcessGroup::~ProcessGroup() {
  if (guard > 0) {
    current = 0;
    kill(guard, SIGKILL);
    while (waitpid(guard, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (alive >= 0)
    close(alive);
}

void endProcessGroup() {
  if (const pid_t group = current; group > 0)
    kill(-group, SIGTERM);
}

} // namespace trainc
