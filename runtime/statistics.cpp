// SPDX-License-Identifier: Apache-2.0
//
// Counts allocations. The allocation functions defined here stand before those
// of the C library for the program and for every shared library (oneDNN, MPI,
// OpenMP) and pass the call on, so that "nothing is allocated in a step" is
// measured and not only claimed.
#include "runtime/statistics.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
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

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) noexcept {
  count();
  return __libc_malloc(size);
}
void *calloc(size_t items, size_t size) noexcept {
  count();
  return __libc_calloc(items, size);
}
void *realloc(void *old, size_t size) noexcept {
  count();
  return __libc_realloc(old, size);
}
void *memalign(size_t alignment, size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **result, size_t alignment, size_t size) noexcept {
  count();
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0)
    return EINVAL;
  void *memory = __libc_memalign(alignment, size);
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

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace trainc
