// SPDX-License-Identifier: Apache-2.0
//
// Parameters and optimizer state, once for all ranks of a host (--shard optimizer): each updates
// its part, in memory that all of them map, so nothing has to be exchanged after the update.
#pragma once

#include "runtime/program.h"
#include "runtime/ranks/communicator.h"

#include <vector>

namespace trainc {

class shared_state {
public:
  // Collective. Throws `failure`: the program cannot update in parts (exit_usage), ranks of a host
  // cannot see each other's memory (exit_machine).
  shared_state(communicator &ranks, const program &program);
  ~shared_state();
  shared_state(const shared_state &) = delete;
  shared_state &operator=(const shared_state &) = delete;

  char *base(arena_kind kind) const; // of parameters or optimizer state
  element_range own() const { return own_; }
  bool holds(const char *address) const;
  // Whether this is the rank that writes what is loaded.
  bool is_writer() const { return is_writer_; }

private:
  const program &program_;
  bool is_writer_;
  element_range own_;
  std::vector<char *> files_; // of the ranks of the host; all but the first are a page
};

} // namespace trainc
