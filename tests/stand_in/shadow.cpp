// SPDX-License-Identifier: Apache-2.0
#include "shadow.h"
#include "report.h"

#include <algorithm>
#include <string>
#include <sys/mman.h>

namespace trainc::stand_in {

region device_region, shared_region;
moment current;

void set_thread(unsigned thread) {
  current.now = current.clock << clock_shift | current.timeline << timeline_shift | thread;
}

void tick() {
  ++current.clock;
  set_thread(thread_of(current.now));
}

namespace {

void *reserve(size_t bytes) {
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    fail("start", "cannot reserve " + std::to_string(bytes) + " bytes of address space");
  return address;
}

// Pages wholly inside are given back and read as zero; the rest is cleared.
void clear(void *begin, size_t bytes) {
  constexpr uintptr_t page = 4096;
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin), last = first + bytes;
  const uintptr_t from = (first + page - 1) / page * page, to = last / page * page;
  if (from >= to) {
    std::fill_n(static_cast<char *>(begin), bytes, 0);
    return;
  }
  std::fill_n(static_cast<char *>(begin), from - first, 0);
  madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
  std::fill_n(reinterpret_cast<char *>(to), last - to, 0);
}

} // namespace

void map_region(region &target, uintptr_t base, size_t size) {
  target.base = base == 0 ? reinterpret_cast<uintptr_t>(reserve(size)) : base;
  target.size = size;
  const size_t words = (size + 3) / 4;
  target.words = static_cast<cell *>(reserve(words * sizeof(cell)));
  target.bytes = static_cast<cell *>(reserve(words * 4 * sizeof(cell)));
  target.split = static_cast<uint8_t *>(reserve(words));
}

void forget(region &target, size_t offset, size_t size) {
  const size_t first = offset / 4, words = (offset + size + 3) / 4 - first;
  clear(target.words + first, words * sizeof(cell));
  clear(target.split + first, words);
}

} // namespace trainc::stand_in
