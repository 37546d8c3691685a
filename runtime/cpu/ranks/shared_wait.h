// SPDX-License-Identifier: Apache-2.0
//
// Waiting for another process of this host, in memory that both map: a short spin, then the kernel,
// so more ranks than cores do no harm. For ever where that one does not come: the watchdog's
// matter.
#pragma once

#include <atomic>
#include <cstdint>

namespace trainc {

// Returns once `word` is no longer `seen`.
void wait_for_change(const std::atomic<uint32_t> &word, uint32_t seen);
// How long this thread has done so, altogether, and for what it has noted besides.
double seconds_waited();
void note_waited(double seconds);
// Adds one and wakes all who wait for that.
void change(std::atomic<uint32_t> &word);

} // namespace trainc
