// SPDX-License-Identifier: Apache-2.0
//
// The arenas of a run: one anonymous mapping each, touched at start-up so that
// a machine with too little memory says so before the first step.
#pragma once

#include "runtime/program.h"

#include <string>
#include <vector>

namespace trainc {

const char *name_of(arena_kind kind);

class arena_set {
public:
  arena_set() = default;
  ~arena_set();
  arena_set(const arena_set &) = delete;
  arena_set &operator=(const arena_set &) = delete;

  char *allocate(int64_t bytes); // 64-byte aligned, zero, touched; at least one byte
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
};

// Throws `failure` (exit_machine) when the machine's available memory is below
// `bytes` times `processes`.
void check_memory(int64_t bytes, int processes);

// Zeroes a mapping with all threads, so that its pages exist and lie near them.
void touch(char *base, int64_t bytes);

// "497.8 MB"
std::string byte_text(int64_t bytes);

} // namespace trainc
