// SPDX-License-Identifier: Apache-2.0
//
// Who wrote and who read each byte of device and shared memory last, and whether that
// happened before what runs now. Every access of a kernel passes through here.
//
// Time is one clock for the whole process, which moves on at every operation, block
// and barrier. An operation knows, for each stream, up to which clock everything
// happened before it (a vector clock); within one launch, barriers order the threads
// of a block and __syncwarp those of a warp.
//
// Memory is looked at in words of four bytes. A word that was accessed in parts keeps
// one record for each byte until a whole write joins them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainc::stand_in {

constexpr int timelines = 16;
using vector_clock = std::array<uint64_t, timelines>;

// One access: thread in bits 0 to 9, timeline in 10 to 13, three flags, then the clock.
using stamp = uint64_t;
constexpr int timeline_shift = 10, clock_shift = 17;
constexpr stamp several_threads = 1 << 14; // of one warp, between the same two barriers
constexpr stamp several_warps = 1 << 15;   // of one block, likewise
constexpr stamp atomic_flag = 1 << 16;

inline uint64_t clock_of(stamp s) { return s >> clock_shift; }
inline unsigned thread_of(stamp s) { return s & 1023; }
inline unsigned timeline_of(stamp s) { return s >> timeline_shift & (timelines - 1); }

struct cell {
  stamp write, read; // 0: never
};

struct region {
  uintptr_t base = 0;
  size_t size = 0;
  cell *words = nullptr;    // one for four bytes
  cell *bytes = nullptr;    // one for each byte of a split word
  uint8_t *split = nullptr; // one for four bytes
};
extern region device_region, shared_region;

// What runs now.
struct moment {
  stamp now = 0; // without flags
  uint64_t clock = 0;
  uint64_t operation_start = 0, block_start = 0;
  uint64_t barrier = 0;   // clock of the block's last barrier
  uint64_t warp_sync = 0; // clock of the warp's last __syncwarp
  unsigned timeline = 0;
  vector_clock known = {};
};
extern moment current;

void tick();                      // moves the clock on
void set_thread(unsigned thread); // whose accesses follow
void map_region(region &target, uintptr_t base, size_t size);
void forget(region &target, size_t offset, size_t size); // as if never touched

enum class access_kind { read, write, atomic };
enum class problem { never_written, race };

// Ends the program; where.cpp knows what to say.
[[noreturn]] void report_access(const region &where, size_t offset, size_t size, access_kind kind,
                                problem what, stamp other, bool other_wrote, const void *code);

inline bool happened_before(stamp s) {
  const uint64_t clock = clock_of(s);
  if (clock < current.operation_start)
    return clock <= current.known[timeline_of(s)];
  if (clock < current.block_start)
    return false; // another block of this launch
  if (clock < current.barrier)
    return true;
  if ((s & (several_threads | several_warps)) == 0 && thread_of(s) == thread_of(current.now))
    return true;
  return (s & several_warps) == 0 && clock < current.warp_sync &&
         (thread_of(s) ^ thread_of(current.now)) < 32;
}

// A reader beside another that is not ordered with it: the one that later writes are
// harder to order with stays.
inline stamp join_readers(stamp earlier) {
  if (clock_of(earlier) < current.block_start)
    return earlier;
  const bool other_warp = (thread_of(earlier) ^ thread_of(current.now)) >= 32;
  return current.now | several_threads | (earlier & several_warps) |
         (other_warp ? several_warps : 0);
}

template <access_kind Kind, bool Shared>
inline void check_cell(cell &c, const region &where, size_t offset, size_t size, const void *code) {
  const stamp now = current.now;
  const uint64_t oldest = Shared ? current.block_start : 1;
  const bool written = clock_of(c.write) >= oldest && c.write != 0;
  if constexpr (Kind == access_kind::read) {
    if (c.read == now)
      return;
    if (!written) [[unlikely]]
      report_access(where, offset, size, Kind, problem::never_written, 0, false, code);
    if (!happened_before(c.write)) [[unlikely]]
      report_access(where, offset, size, Kind, problem::race, c.write, true, code);
    const bool alone = c.read == 0 || clock_of(c.read) < oldest || happened_before(c.read);
    c.read = alone ? now : join_readers(c.read);
    return;
  }
  if constexpr (Kind == access_kind::atomic)
    if (!written) [[unlikely]]
      report_access(where, offset, size, Kind, problem::never_written, 0, false, code);
  const bool both_atomic = Kind == access_kind::atomic && (c.write & atomic_flag) != 0 &&
                           clock_of(c.write) >= current.operation_start;
  if (written && !both_atomic && !happened_before(c.write)) [[unlikely]]
    report_access(where, offset, size, Kind, problem::race, c.write, true, code);
  if (c.read != 0 && clock_of(c.read) >= oldest && !happened_before(c.read)) [[unlikely]]
    report_access(where, offset, size, Kind, problem::race, c.read, false, code);
  // After a plain write of the same thread that others cannot know of yet, an atomic
  // one stands for both.
  const bool atomic = Kind == access_kind::atomic &&
                      ((c.write & atomic_flag) != 0 || clock_of(c.write) < current.barrier);
  c.write = now | (atomic ? atomic_flag : 0);
  c.read = 0;
}

// Parts of words: byte by byte.
template <access_kind Kind, bool Shared>
void access_bytes(region &where, size_t offset, size_t size, const void *code) {
  for (size_t i = offset; i < offset + size; ++i) {
    const size_t word = i / 4;
    if (where.split[word] == 0) {
      for (size_t byte = 0; byte < 4; ++byte)
        where.bytes[word * 4 + byte] = where.words[word];
      where.split[word] = 1;
    }
    check_cell<Kind, Shared>(where.bytes[i], where, i, 1, code);
  }
}

template <access_kind Kind, bool Shared>
inline void access_words(region &where, size_t offset, size_t size, const void *code) {
  for (size_t word = offset / 4; word < (offset + size) / 4; ++word) {
    if (where.split[word] == 0) [[likely]] {
      check_cell<Kind, Shared>(where.words[word], where, word * 4, 4, code);
      continue;
    }
    access_bytes<Kind, Shared>(where, word * 4, 4, code);
    if (Kind != access_kind::read) {
      where.words[word] = where.bytes[word * 4];
      where.split[word] = 0;
    }
  }
}

template <access_kind Kind, bool Shared>
inline void check_memory(region &where, size_t offset, size_t size, const void *code) {
  if ((offset | size) % 4 == 0) [[likely]] {
    access_words<Kind, Shared>(where, offset, size, code);
    return;
  }
  const size_t end = offset + size;
  const size_t head = (offset + 3) / 4 * 4, tail = end / 4 * 4;
  if (head >= tail) {
    access_bytes<Kind, Shared>(where, offset, size, code);
    return;
  }
  access_bytes<Kind, Shared>(where, offset, head - offset, code);
  access_words<Kind, Shared>(where, head, tail - head, code);
  access_bytes<Kind, Shared>(where, tail, end - tail, code);
}

} // namespace trainc::stand_in
