// SPDX-License-Identifier: Apache-2.0
//
// What code that knows no watchdog says of its rank: that work gets done, and that it waits for
// others. The watchdog of the rank shows it to them.
#pragma once

#include "runtime/process/clock.h"

#include <atomic>
#include <cstdint>

namespace trainc {

struct signs_of_life {
  std::atomic<uint64_t> work = 0;      // pieces that any thread has done
  std::atomic<double> waits_since = 0; // seconds_now() when it began to wait for others; 0: works
};
inline signs_of_life own_signs;

// Said after each piece of what may take longer than --hang-timeout in all: a part of a file, of
// memory, a measurement.
inline void note_work() { own_signs.work.fetch_add(1, std::memory_order_relaxed); }

// While one lives, this rank can do nothing until others come. One inside of another changes
// nothing. Of the thread that exchanges.
class waiting_for_ranks {
public:
  waiting_for_ranks() : before_(own_signs.waits_since) {
    if (before_ == 0)
      own_signs.waits_since = seconds_now();
  }
  ~waiting_for_ranks() { own_signs.waits_since = before_; }
  waiting_for_ranks(const waiting_for_ranks &) = delete;
  waiting_for_ranks &operator=(const waiting_for_ranks &) = delete;

private:
  double before_;
};

} // namespace trainc
