// SPDX-License-Identifier: Apache-2.0
//
// Memory files, found through /proc by process and descriptor; a random number in the
// first page tells that the file found is the one meant.
#include "runtime/ranks/shared_memory.h"

#include "runtime/arena.h"
#include "runtime/failure.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/ranks/mpi.h"

#include <algorithm>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 // Linux 6.1, newer than Debian 12's glibc
#endif

namespace trainc {
namespace {

constexpr size_t large_page_bytes = 2 << 20;

// How others open a memory file of this process.
struct file_address {
  int64_t process;
  int64_t descriptor;
  int64_t bytes;
  uint64_t magic;
};

uint64_t &magic_of(char *file) { return *reinterpret_cast<uint64_t *>(file); }

// Where large pages can begin.
char *map_file(int descriptor, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  const size_t reserved = size + large_page_bytes;
  void *room =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(room);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % large_page_bytes;
  char *base = begin + before, *end = base + round_up(bytes, page_bytes);
  if (mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
      MAP_FAILED) {
    munmap(room, reserved);
    return nullptr;
  }
  if (before > 0)
    munmap(begin, before);
  if (end < begin + reserved)
    munmap(end, static_cast<size_t>(begin + reserved - end));
  madvise(base, size, MADV_HUGEPAGE);
  return base;
}

// Pages that exist become large ones, if they may: kernels give memory files none by themselves.
void use_large_pages(char *base, int64_t bytes) {
  constexpr int64_t stride = 64 << 20;
  for (int64_t first = 0; first < bytes; first += stride) {
    if (madvise(base + first, static_cast<size_t>(std::min(stride, bytes - first)),
                MADV_COLLAPSE) != 0)
      return;
    note_work();
  }
}

char *open_file(const file_address &address) {
  std::string path = format_text("/proc/%lld/fd/%lld", static_cast<long long>(address.process),
                                 static_cast<long long>(address.descriptor));
  int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0)
    return nullptr;
  char *file =
      lseek(opened, 0, SEEK_END) == address.bytes ? map_file(opened, address.bytes) : nullptr;
  close(opened);
  return file;
}

} // namespace

std::vector<char *> share_with_host(const char *name, int64_t bytes, bool sparse) {
  MPI_Comm host;
  int rank, size;
  mpi_call(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  mpi_call(MPI_Comm_rank)(host, &rank);
  mpi_call(MPI_Comm_size)(host, &size);
  int descriptor = memfd_create(name, MFD_CLOEXEC);
  char *mine = nullptr;
  if (descriptor >= 0 && ftruncate(descriptor, bytes) == 0)
    mine = map_file(descriptor, bytes);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  file_address address = {getpid(), descriptor, bytes,
                          static_cast<uint64_t>(now.tv_nsec) * 1000003 +
                              static_cast<uint64_t>(getpid())};
  if (mine) {
    touch(mine, sparse ? page_bytes : bytes);
    if (!sparse)
      use_large_pages(mine, bytes);
    magic_of(mine) = address.magic;
  }
  std::vector<file_address> addresses(static_cast<size_t>(size));
  {
    waiting_for_ranks wait;
    mpi_call(MPI_Allgather)(&address, sizeof address, MPI_BYTE, addresses.data(), sizeof address,
                            MPI_BYTE, host);
  }
  std::vector<char *> files(static_cast<size_t>(size));
  int complete = mine != nullptr;
  for (int other = 0; other < size; ++other) {
    char *&file = files[static_cast<size_t>(other)];
    const file_address &theirs = addresses[static_cast<size_t>(other)];
    file = other == rank ? mine : open_file(theirs);
    if (!file || magic_of(file) != theirs.magic)
      complete = 0;
  }
  mpi_call(MPI_Allreduce)(MPI_IN_PLACE, &complete, 1, MPI_INT, MPI_MIN, host);
  if (descriptor >= 0)
    close(descriptor);
  mpi_call(MPI_Comm_free)(&host);
  if (complete)
    return files;
  for (size_t other = 0; other < files.size(); ++other)
    if (files[other])
      munmap(files[other], static_cast<size_t>(addresses[other].bytes));
  return {};
}

} // namespace trainc
