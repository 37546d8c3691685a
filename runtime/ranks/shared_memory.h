// SPDX-License-Identifier: Apache-2.0
//
// Memory that the ranks of one host see together: each makes an anonymous memory file
// and maps those of the others. Such files are not limited by the size of /dev/shm and
// leave nothing after.
#pragma once

#include <cstdint>
#include <vector>

namespace trainc {

constexpr int64_t page_bytes = 4096, line_bytes = 64; // a line: of a processor's cache

// The least multiple of `unit` that is not smaller.
constexpr int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// A file of `bytes`, each rank's own number of them, of every rank of this host in rank order,
// mapped; unmap them with munmap. Zeros, except the first eight bytes, which are not the caller's.
// Empty where the ranks cannot see each other's memory (containers of their own, say). Collective.
// Its pages exist then, unless `sparse`: those that nobody touches take no memory.
std::vector<char *> share_with_host(const char *name, int64_t bytes, bool sparse = false);

} // namespace trainc
