// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order. Each element is added on its own, so the
// bits depend on neither threads nor vector width. All sources are read at one pace, a few cache
// lines at a time: each comes from memory once, as fast as that gives it, and each target goes
// there once. Processors ask ahead of time for what a few arrays hold, and not of so many.
#include "runtime/cpu/ranks/flat_sum.h"

#include "runtime/files/data_types.h"
#include "runtime/ranks/shared_memory.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t block_bytes = 256; // of each array
constexpr int64_t bytes_ahead = 1024;

// `length` is at most a block, or a constant.
template <typename T>
inline void sum_block(const std::vector<summand> &summands, char *const *targets, int target_count,
                      int64_t begin, int64_t length) {
  alignas(64)
      T sums[deepest_sum][block_bytes / sizeof(T)]; // those that wait, except whole summands
  const T *waiting[deepest_sum];                    // a stack: an addition takes the upper two
  waiting[0] = sums[0];
  int count = 0;
  for (const summand &each : summands) {
    const T *source = reinterpret_cast<const T *>(each.data) + begin;
    for (int64_t line = 0; line < block_bytes; line += line_bytes)
      __builtin_prefetch(reinterpret_cast<const char *>(source) + bytes_ahead + line);
    waiting[count++] = source;
    for (int i = 0; i < each.additions && count > 1; ++i, --count) {
      const T *left = waiting[count - 2], *right = waiting[count - 1];
      T *sum = sums[count - 2]; // may be `left`
#pragma omp simd
      for (int64_t k = 0; k < length; ++k)
        sum[k] = left[k] + right[k];
      waiting[count - 2] = sum;
    }
  }
  for (int t = 0; t < target_count && count > 0; ++t)
    memcpy(targets[t] + begin * static_cast<int64_t>(sizeof(T)), waiting[0],
           static_cast<size_t>(length) * sizeof(T));
}

template <typename T>
void sum_elements(const std::vector<summand> &summands, char *const *targets, int target_count,
                  int64_t begin, int64_t end) {
  constexpr int64_t block = block_bytes / static_cast<int64_t>(sizeof(T));
  const int64_t blocks = (end - begin) / block;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < blocks; ++i)
    sum_block<T>(summands, targets, target_count, begin + i * block, block);
  if (const int64_t done = begin + blocks * block; done < end)
    sum_block<T>(summands, targets, target_count, done, end - done);
}

} // namespace

void sum_in_order(data_type type, const std::vector<summand> &summands, char *const *targets,
                  int target_count, int64_t begin, int64_t end) {
  auto sum = type == data_type::f64 ? sum_elements<double> : sum_elements<float>;
  sum(summands, targets, target_count, begin, end);
}

} // namespace trainc
