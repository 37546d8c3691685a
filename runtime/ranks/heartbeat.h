// SPDX-License-Identifier: Apache-2.0
//
// What ranks of other hosts do. The first rank of each host sends a message to the first rank of
// all twice a second, which answers in kind; none waits for another. MPI is called from the
// watchdog's thread, so it takes a library that allows that; without one, hosts do not see each
// other.
#pragma once

#include "runtime/ranks/communicator.h"

#include <functional>
#include <memory>

namespace trainc {

class heartbeat {
public:
  // `bytes` of a message, on every rank the same. Collective.
  heartbeat(const communicator &ranks, size_t bytes);
  // Sends what `mine` has then, as the last word; takes at most a second.
  ~heartbeat();
  heartbeat(const heartbeat &) = delete;
  heartbeat &operator=(const heartbeat &) = delete;

  int hosts() const; // that it hears of: the first rank of all of every one, others of the first

  char *mine(); // what is sent, for the caller to write
  // Sends, and calls see(host, message) for each that has come since the last time.
  void beat(const std::function<void(int host, const char *message)> &see);

private:
  struct state;
  std::unique_ptr<state> own_;
};

} // namespace trainc
