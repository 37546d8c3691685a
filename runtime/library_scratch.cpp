// SPDX-License-Identifier: Apache-2.0
//
// Blocks of powers of two out of one reserved range of addresses, which tells
// scratch from other memory when it is freed. Given back, a block goes to its
// thread's list of its size: a thread runs the same products in every step, so
// after the first step it always finds what it needs, whatever the other threads
// do meanwhile. Nothing returns to the system before the process ends.
#include "runtime/library_scratch.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainc {

namespace {

constexpr size_t reserve_bytes = size_t{1} << 36; // of addresses; memory only when touched
constexpr size_t header_bytes = 64;
constexpr size_t scratch_page_bytes = 4096;
constexpr size_t huge_page_bytes = size_t{1} << 21;
constexpr int smallest_class = 6; // blocks of 64 bytes
constexpr int class_count = 37;

struct block_header {
  block_header *next;
  int size_class;
};

struct reserve {
  char *begin = nullptr;
  char *next = nullptr;
  bool tried = false;
};

reserve pool;
std::atomic<char *> pool_begin; // published once the range is mapped
std::mutex pool_mutex;
thread_local int open_scopes = 0;
thread_local block_header *free_blocks[class_count] = {};

bool is_scratch(const void *memory) {
  const char *begin = pool_begin.load(std::memory_order_acquire);
  const char *address = static_cast<const char *>(memory);
  return begin && address >= begin && address < begin + reserve_bytes;
}

block_header *header_of(const void *memory) {
  return reinterpret_cast<block_header *>(reinterpret_cast<uintptr_t>(memory) - header_bytes);
}

bool map_reserve() {
  if (!pool.tried) {
    pool.tried = true;
    // The system call itself: the counted mmap would count what is no memory yet.
    long mapped = syscall(SYS_mmap, nullptr, reserve_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != -1) {
      pool.begin = pool.next = reinterpret_cast<char *>(mapped);
      pool_begin.store(pool.begin, std::memory_order_release);
    }
  }
  return pool.begin != nullptr;
}

void *make_block(int size_class, size_t alignment) {
  auto align_up = [](char *address, size_t unit) {
    return address + (unit - reinterpret_cast<uintptr_t>(address) % unit) % unit;
  };
  char *memory = align_up(pool.next + header_bytes, alignment);
  size_t size = size_t{1} << size_class;
  if (memory + size > pool.begin + reserve_bytes)
    return nullptr;
  pool.next = memory + size;
  header_of(memory)->size_class = size_class;
  return memory;
}

} // namespace

library_scratch_scope::library_scratch_scope() { ++open_scopes; }
library_scratch_scope::~library_scratch_scope() { --open_scopes; }

void *take_library_scratch(size_t size, size_t alignment, bool &is_new) {
  is_new = false;
  if (open_scopes == 0 || alignment > huge_page_bytes || size > reserve_bytes / 4)
    return nullptr;
  // Alignment follows from the size: a cache line, a page, a huge page.
  if (alignment > scratch_page_bytes)
    size = std::max(size, huge_page_bytes);
  else if (alignment > header_bytes)
    size = std::max(size, scratch_page_bytes);
  int size_class = size <= header_bytes ? smallest_class : std::bit_width(size - 1);
  if (block_header *block = free_blocks[size_class]) {
    free_blocks[size_class] = block->next;
    return reinterpret_cast<char *>(block) + header_bytes;
  }
  std::lock_guard lock(pool_mutex);
  if (!map_reserve())
    return nullptr;
  is_new = true;
  return make_block(size_class, size >= huge_page_bytes      ? huge_page_bytes
                                : size >= scratch_page_bytes ? scratch_page_bytes
                                                             : header_bytes);
}

bool give_back_library_scratch(void *memory) {
  if (!is_scratch(memory))
    return false;
  block_header *block = header_of(memory);
  block->next = free_blocks[block->size_class];
  free_blocks[block->size_class] = block;
  return true;
}

size_t library_scratch_size(const void *memory) {
  return is_scratch(memory) ? size_t{1} << header_of(memory)->size_class : 0;
}

} // namespace trainc
