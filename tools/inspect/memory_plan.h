// SPDX-License-Identifier: Apache-2.0
//
// The memory plan of an output folder as its text says it: plan/memory.txt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainc::inspect {

struct Tensor {
  std::string arena, name;
  int64_t offset, bytes;
  int first, last; // steps
  bool atPeak;
};

struct Entry {
  std::string title; // "forward_backward: 80 steps, ..."
  std::vector<Tensor> tensors;
};

struct MemoryPlan {
  std::vector<std::string> arenas; // the table's lines
  std::vector<Entry> entries;
};

MemoryPlan parseMemoryPlan(const std::string &text);

} // namespace trainc::inspect
