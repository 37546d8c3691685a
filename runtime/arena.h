// SPDX-License-Identifier: Apache-2.0
//
// The arenas of a run: one anonymous mapping each, touched at start-up so that
// a machine with too little memory says so before the first step.
#pragma once

#include "runtime/program.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace trainc {

const char *name_of(arena_kind kind);

// How the host gets at the bytes of arenas, which may lie where it cannot follow
// an address.
class arena_access {
public:
  virtual ~arena_access() = default;

  static constexpr int64_t transfer_bytes = 8 << 20; // most that one call moves

  // Host memory that holds `bytes` from this address on, until the next call. The
  // address itself where the host can follow it.
  virtual const char *read(const char *address, int64_t bytes) = 0;
  // Calls fill(host memory of `bytes`), which then goes to the address.
  virtual void write(char *address, int64_t bytes, const std::function<void(char *)> &fill) = 0;

  // The rank that has what is at this address; `bytes` become those of it that the rank has side by
  // side. Every rank itself, -1, where none keeps a part alone: then `read` may be called anywhere
  // and `write` takes all; else `write` takes what this rank keeps.
  virtual int holder(const char * /*address*/, int64_t & /*bytes*/) const { return every_rank; }
  static constexpr int every_rank = -1;
};

// Calls piece(begin, bytes) for pieces of at most transfer_bytes, in order.
template <typename Piece> void in_transfers(int64_t bytes, const Piece &piece) {
  for (int64_t begin = 0; begin < bytes; begin += arena_access::transfer_bytes)
    piece(begin, bytes - begin < arena_access::transfer_bytes ? bytes - begin
                                                              : arena_access::transfer_bytes);
}

class arena_set {
public:
  arena_set() = default;
  ~arena_set();
  arena_set(const arena_set &) = delete;
  arena_set &operator=(const arena_set &) = delete;

  // What is allocated from now on lies in this memory, which is 64-byte aligned.
  void take_from(char *memory, int64_t bytes) {
    given_ = memory;
    given_bytes_ = bytes;
  }
  // So many bytes of it an arena takes.
  static constexpr int64_t bytes_taken(int64_t bytes) {
    return (std::max<int64_t>(bytes, 1) + 63) / 64 * 64;
  }
  char *allocate(int64_t bytes); // 64-byte aligned, zero, touched; at least one byte
  char *reserve(int64_t bytes);  // not touched: pages that nobody touches take no memory
  void allocate(arena_kind kind, int64_t bytes) {
    places.base[static_cast<int>(kind)] = allocate(bytes);
  }
  arenas places = {};

private:
  struct mapping {
    char *base;
    size_t bytes;
  };
  std::vector<mapping> mappings_;
  char *given_ = nullptr; // what is left
  int64_t given_bytes_ = 0;
};

// Throws `failure` (exit_machine) when the machine's available memory is below
// `bytes` times `processes`.
void check_memory(int64_t bytes, int processes);

// Writes to each page of a fresh mapping, which is 0, with all threads, so that its pages exist and
// lie near them.
void touch(char *base, int64_t bytes);

} // namespace trainc
