// SPDX-License-Identifier: Apache-2.0
//
// Memory of the calling thread for a step.
#pragma once

#include <cstddef>
#include <vector>

namespace trainc {

// As large as the largest that the thread has needed: after a first step nothing is taken from the
// system.
template <typename T> T *thread_memory(size_t count) {
  struct alignas(64) line {
    char bytes[64];
  };
  thread_local std::vector<line> lines;
  if (lines.size() * sizeof(line) < count * sizeof(T))
    lines.resize((count * sizeof(T) + sizeof(line) - 1) / sizeof(line));
  return reinterpret_cast<T *>(lines.data());
}

} // namespace trainc
