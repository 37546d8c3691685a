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

constexpr int64_t piece_elements = 2048;

template <typename T>
void sum_piece(const char *initial, char *const *sources, int source_count, char *const *targets,
               int target_count, int64_t begin, int64_t length) {
  alignas(64) T total[piece_elements];
  auto at = [begin](const char *base) { return reinterpret_cast<const T *>(base) + begin; };
  const T *first = initial ? at(initial) : at(sources[0]);
  const T *second = initial ? at(sources[0]) : (source_count > 1 ? at(sources[1]) : nullptr);
  int used = initial ? 1 : std::min(source_count, 2);
  if (second)
    for (int64_t i = 0; i < length; ++i)
      total[i] = first[i] + second[i];
  else
    memcpy(total, first, static_cast<size_t>(length) * sizeof(T));
  for (int s = used; s < source_count; ++s) {
    const T *source = at(sources[s]);
    for (int64_t i = 0; i < length; ++i)
      total[i] += source[i];
  }
  for (int t = 0; t < target_count; ++t)
    memcpy(targets[t] + begin * static_cast<int64_t>(sizeof(T)), total,
           static_cast<size_t>(length) * sizeof(T));
}

} // namespace

void sum_in_order(data_type type, const char *initial, char *const *sources, int source_count,
                  char *const *targets, int target_count, int64_t begin, int64_t end) {
#pragma omp parallel for schedule(static)
  for (int64_t first = begin; first < end; first += piece_elements) {
    int64_t length = std::min(piece_elements, end - first);
    auto sum = type == data_type::f64 ? sum_piece<double> : sum_piece<float>;
    sum(initial, sources, source_count, targets, target_count, first, length);
  }
}

} // namespace trainc
