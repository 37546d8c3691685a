// SPDX-License-Identifier: Apache-2.0
//
// The host's memory: how much this process may still take and has taken, and that it keeps.
#pragma once

#include <cstdint>
#include <string>

namespace trainc {

// Bytes: what the machine has available, or less where a control group (a container, a job of a
// scheduler) allows less.
int64_t available_memory();

// Of the control groups that `groups` names (the text of /proc/PID/cgroup) below `root`
// (/sys/fs/cgroup), version 1 or 2: the least that one of them and its parents leave; INT64_MAX
// where none limits. Pages of files that a group could drop count as free.
int64_t available_in_groups(const std::string &groups, const std::string &root);

// What is in memory now; 0: not known. Allocates nothing.
int64_t resident_bytes();

// The most that was in memory at once.
int64_t peak_resident_bytes();

// From now on what is freed stays with the process for the next call. oneDNN takes megabytes within
// a matrix product; from the system they would be mapped and faulted in each time.
void keep_freed_memory();

} // namespace trainc
