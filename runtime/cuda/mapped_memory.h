// SPDX-License-Identifier: Apache-2.0
//
// Addresses of the device, some with memory: an arena keeps its offsets, and a rank that
// needs parts of it takes memory for these alone, in whole pages (2 MiB).
#pragma once

#include "runtime/element_range.h"

#include <cstdint>
#include <vector>

namespace trainc {

class mapped_memory {
public:
  mapped_memory() = default;
  ~mapped_memory();
  mapped_memory(const mapped_memory &) = delete;
  mapped_memory &operator=(const mapped_memory &) = delete;

  // Of the current device; 0 where it cannot do that.
  static int64_t page_bytes();
  // Whole pages that have any of these bytes, ascending and none twice.
  static std::vector<element_range> pages_of(std::vector<element_range> pieces, int64_t page);

  // Takes addresses for so many bytes, and memory for these of them, of `pages_of`. Throws
  // `failure` (exit_machine).
  char *allocate(int64_t bytes, const std::vector<element_range> &pages);

private:
  uint64_t base_ = 0, bytes_ = 0;
  std::vector<element_range> mapped_;
};

} // namespace trainc
