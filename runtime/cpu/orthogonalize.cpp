// SPDX-License-Identifier: Apache-2.0
//
// Products by matmul; what lies between them is a pass over memory that threads share.
#include "runtime/kernels/orthogonalize.h"

#include "runtime/cpu/sum_of_squares.h"
#include "runtime/kernels/orthogonalize_forms.h"

#include <algorithm>
#include <cmath>

namespace trainc {

namespace {

constexpr int64_t few_numbers = 16384; // not worth waking threads for

template <typename T> void copy_elements(int64_t count, const T *x, T *result) {
#pragma omp parallel for simd schedule(static) if (count > few_numbers)
  for (int64_t i = 0; i < count; ++i)
    result[i] = x[i];
}

template <typename T> void divide_by_norm(int64_t count, T *x, double *sums) {
  const int64_t size = (count + orthogonalize_pieces - 1) / orthogonalize_pieces;
#pragma omp parallel for schedule(static, 1) if (count > few_numbers)
  for (int64_t piece = 0; piece < orthogonalize_pieces; ++piece) {
    const int64_t first = std::min(piece * size, count);
    sums[piece] = sum_of_squares(x, first, std::min(first + size, count));
  }
  double total = 0;
  for (int64_t piece = 0; piece < orthogonalize_pieces; ++piece)
    total += sums[piece];
  const T norm = static_cast<T>(std::max(std::sqrt(total), newton_schulz_least_norm));
#pragma omp parallel for simd schedule(static) if (count > few_numbers)
  for (int64_t i = 0; i < count; ++i)
    x[i] /= norm;
}

// result = x factor + y other; the result may be x or y.
template <typename T>
void mix(int64_t count, const T *x, double factor, const T *y, double other, T *result) {
  const T of_x = static_cast<T>(factor), of_y = static_cast<T>(other);
#pragma omp parallel for simd schedule(static) if (count > few_numbers)
  for (int64_t i = 0; i < count; ++i)
    result[i] = x[i] * of_x + y[i] * of_y;
}

} // namespace

DEFINE_ORTHOGONALIZE

} // namespace trainc
