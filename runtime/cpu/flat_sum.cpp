// SPDX-License-Identifier: Apache-2.0
//
// Sums of flat arrays in a given order. Each element is added on its own, so the
// bits depend on neither threads nor vector width. Works in pieces that stay in
// the first-level cache: each source is read once and each target written once.
#include "runtime/cpu/flat_sum.h"

#include "runtime/data_types.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t piece_bytes = 8192; // of each array

template <typename T>
void sum_piece(const std::vector<summand> &summands, char *const *targets, int target_count,
               int64_t begin, int64_t length) {
  alignas(64)
      T sums[deepest_sum][piece_bytes / sizeof(T)]; // those that wait, but for whole summands
  const T *waiting[deepest_sum] = {};               // a stack: an addition takes the upper two
  int count = 0;
  for (const summand &each : summands) {
    waiting[count++] = reinterpret_cast<const T *>(each.data) + begin;
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

} // namespace

void sum_in_order(data_type type, const std::vector<summand> &summands, char *const *targets,
                  int target_count, int64_t begin, int64_t end) {
  const int64_t piece_elements = piece_bytes / bytes_of(type);
#pragma omp parallel for schedule(static)
  for (int64_t first = begin; first < end; first += piece_elements) {
    int64_t length = std::min(piece_elements, end - first);
    auto sum = type == data_type::f64 ? sum_piece<double> : sum_piece<float>;
    sum(summands, targets, target_count, first, length);
  }
}

} // namespace trainc
