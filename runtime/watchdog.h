// SPDX-License-Identifier: Apache-2.0
//
// Ends a job whose ranks wait for one that has stopped. Each rank of a host says in shared
// memory what it does, and a thread of it that it is alive; the thread of another rank that
// sees neither go on names the rank and ends its own process, which the launcher takes as the
// end of the job.
#pragma once

#include "runtime/communicator.h"

#include <atomic>
#include <thread>
#include <vector>

namespace trainc {

enum class activity : int { start, computing, exchanging, evaluating, saving, end };

class watchdog {
public:
  // `seconds`: how long a rank may be silent, or others may wait for it; 0: no watching. Nor
  // where this is the only rank of its host. Collective.
  watchdog(communicator &ranks, double seconds);
  ~watchdog();
  watchdog(const watchdog &) = delete;
  watchdog &operator=(const watchdog &) = delete;

  void begin_step(int64_t step);
  void begin_batch(); // of an evaluation, whose time counts like a step's
  // What this rank begins. While `exchanging` it waits for the others.
  void now(activity what);

private:
  struct page; // of one rank, in shared memory
  void watch();
  const page *silent(double time) const;
  const page *awaited(double time) const;
  [[noreturn]] void end_job(const page &culprit, const char *how, double seconds) const;

  double limit_;
  std::vector<page *> pages_; // of the host's ranks
  page *own_ = nullptr;
  double step_began_ = 0;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

} // namespace trainc
