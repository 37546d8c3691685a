// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/ranks/shared_wait.h"

#include "runtime/process/clock.h"

#include <climits>
#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int spins_before_sleep = 2000;

thread_local double waited = 0;

void spin_then_sleep(const std::atomic<uint32_t> &word, uint32_t seen) {
  for (int spin = 0; spin < spins_before_sleep; ++spin) {
    if (word.load(std::memory_order_acquire) != seen)
      return;
    _mm_pause();
  }
  while (word.load() == seen)
    syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
}

} // namespace

void wait_for_change(const std::atomic<uint32_t> &word, uint32_t seen) {
  if (word.load(std::memory_order_acquire) != seen)
    return;
  const double began = seconds_now();
  spin_then_sleep(word, seen);
  note_waited(seconds_now() - began);
}

double seconds_waited() { return waited; }
void note_waited(double seconds) { waited += seconds; }

void change(std::atomic<uint32_t> &word) {
  word.fetch_add(1);
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace trainc
