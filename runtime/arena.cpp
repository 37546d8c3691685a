// SPDX-License-Identifier: Apache-2.0
//
// Allocation of the arenas.
#include "runtime/arena.h"
#include "runtime/byte_text.h"

#include "runtime/failure.h"
#include "runtime/process/host_memory.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int64_t touch_stride = 2 << 20; // a huge page: each is touched by one thread

} // namespace

const char *name_of(arena_kind kind) {
  constexpr const char *names[arena_count + 2] = {"parameters",    "gradients", "optimizer state",
                                                  "activations",   "workspace", "stash",
                                                  "frozen weights"};
  return names[static_cast<int>(kind)];
}

template <typename Take> static void by_pieces(char *base, int64_t bytes, const Take &take) {
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < bytes; first += touch_stride) {
    take(base + first, std::min(touch_stride, bytes - first));
    note_work();
  }
}

void touch(char *base, int64_t bytes) {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  by_pieces(base, bytes, [](char *piece, int64_t count) {
    for (int64_t i = 0; i < count; i += page)
      *static_cast<volatile char *>(piece + i) = 0;
  });
}

static void clear(char *base, int64_t bytes) {
  by_pieces(base, bytes,
            [](char *piece, int64_t count) { memset(piece, 0, static_cast<size_t>(count)); });
}

void check_memory(int64_t bytes, int processes) {
  int64_t available = available_memory(), needed = bytes * processes;
  if (needed > available)
    throw failure(exit_machine,
                  format_text("not enough memory: the arenas of %d rank%s on this host need %s, %s "
                              "are available\n  try: a smaller batch, trainc --memory-budget, or "
                              "fewer ranks per host",
                              processes, processes == 1 ? "" : "s", byte_text(needed).c_str(),
                              byte_text(available).c_str()));
}

char *arena_set::allocate(int64_t bytes) {
  char *base = reserve(bytes);
  if (given_)
    clear(base, std::max<int64_t>(bytes, 1));
  else
    touch(base, std::max<int64_t>(bytes, 1));
  return base;
}

char *arena_set::reserve(int64_t bytes) {
  if (given_) {
    const int64_t taken = bytes_taken(bytes);
    if (taken > given_bytes_)
      throw failure(exit_usage,
                    format_text("the memory that was given has no room for an arena of "
                                "%s: %s are left\n  try: as much as is asked for",
                                byte_text(bytes).c_str(), byte_text(given_bytes_).c_str()));
    given_bytes_ -= taken;
    given_ += taken;
    return given_ - taken;
  }
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw failure(exit_machine, format_text("cannot allocate an arena of %s: %s",
                                            byte_text(bytes).c_str(), strerror(errno)));
  madvise(base, size, MADV_HUGEPAGE); // a hint: small pages work too
  mappings_.push_back({static_cast<char *>(base), size});
  return mappings_.back().base;
}

arena_set::~arena_set() {
  for (const mapping &entry : mappings_)
    munmap(entry.base, entry.bytes);
}

} // namespace trainc
