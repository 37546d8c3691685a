// SPDX-License-Identifier: Apache-2.0
//
// Programs that this process runs and that do not outlive it, nor what they run themselves.
#pragma once

#include <string>
#include <sys/types.h>

namespace trainc {

/// A group for child processes. A guard, the first of the group, waits for the end of this process,
/// `kill -9` included, and ends the others then.
class ProcessGroup {
public:
  /// The guard removes the folder too, where it is empty.
  explicit ProcessGroup(const std::string &temporary);
  ~ProcessGroup(); // of the group the guard alone ends
  ProcessGroup(const ProcessGroup &) = delete;
  ProcessGroup &operator=(const ProcessGroup &) = delete;

  /// For posix_spawnattr_setpgroup; 0 where the system has no process left for a guard: what is
  /// started is then in this process's own group.
  pid_t id() const { return guard; }

private:
  pid_t guard = 0;
  int alive = -1; // the end of a pipe that the system closes with this process
};

/// Asks all in the group that there is to end, on an interrupt of this process. From any thread.
void endProcessGroup();

} // namespace trainc
