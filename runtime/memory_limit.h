// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process may still take.
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

} // namespace trainc
