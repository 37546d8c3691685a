// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations. The allocation functions defined here stand before those
// of the C library for the program and for every shared library (oneDNN, MPI,
// OpenMP) and pass the call on, so that "nothing is allocated in a step" is
// measured and not only claimed.
#include "runtime/statistics.h"
#include "runtime/library_scratch.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define TRAINC_COUNTS_ALLOCATIONS 1
#endif

#ifdef TRAINC_COUNTS_ALLOCATIONS

static std::atomic<int64_t> allocations;
static void count() { allocations.fetch_add(1, std::memory_order_relaxed); }

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names
extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

} // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

// What a library takes for one call comes from kept blocks; see library_scratch.h.
static void *scratch(size_t size, size_t alignment) {
  bool is_new = false;
  void *memory = trainc::take_library_scratch(size, alignment, is_new);
  if (is_new)
    count();
  return memory;
}

static void *aligned(size_t alignment, size_t size) {
  if (void *memory = scratch(size, alignment))
    return memory;
  count();
  return __libc_memalign(alignment, size);
}

extern "C" {

void *malloc(size_t size) noexcept {
  if (void *memory = scratch(size, alignof(std::max_align_t)))
    return memory;
  count();
  return __libc_malloc(size);
}
void *calloc(size_t items, size_t size) noexcept {
  size_t bytes = 0;
  if (!__builtin_mul_overflow(items, size, &bytes))
    if (void *memory = scratch(bytes, alignof(std::max_align_t)))
      return std::memset(memory, 0, bytes);
  count();
  return __libc_calloc(items, size);
}
void free(void *memory) noexcept {
  if (!trainc::give_back_library_scratch(memory))
    __libc_free(memory);
}
void *realloc(void *old, size_t size) noexcept {
  if (size_t held = trainc::library_scratch_size(old)) {
    void *memory = malloc(size);
    if (memory) {
      std::memcpy(memory, old, std::min(held, size));
      free(old);
    }
    return memory;
  }
  count();
  return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) noexcept { return aligned(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) noexcept { return aligned(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0)
    return EINVAL;
  void *memory = aligned(alignment, size);
  if (!memory)
    return ENOMEM;
  *result = memory;
  return 0;
}
void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  count();
  return reinterpret_cast<void *>(
      syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

} // extern "C"

#endif

namespace trainc {

int64_t allocation_count() {
#ifdef TRAINC_COUNTS_ALLOCATIONS
  return allocations.load(std::memory_order_relaxed);
#else
  return -1;
#endif
}

int64_t peak_resident_bytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

} // namespace trainc
