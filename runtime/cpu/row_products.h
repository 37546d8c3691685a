// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices in rows: c = alpha op(a) op(b) + beta c; 'T' transposes. Each is computed by
// the thread that calls: by oneDNN, or where that is absent by our own loops (runtime/minimal).
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <cstdint>

namespace trainc {

void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc);

// Where the processor multiplies tiles of bf16 (multiplies_bfloat16). alpha is 1: oneDNN multiplies
// by another one slowly.
void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const bfloat16 *a, int64_t lda, const bfloat16 *b, int64_t ldb, float beta,
                   float *c, int64_t ldc);
bool multiplies_bfloat16();

inline void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                          const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                          double *c, int64_t ldc) { // serves tests
  const int64_t row_a = op_a == 'T' ? 1 : lda, step_a = op_a == 'T' ? lda : 1;
  const int64_t step_b = op_b == 'T' ? 1 : ldb, column_b = op_b == 'T' ? ldb : 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[i * row_a + l * step_a] * b[l * step_b + j * column_b];
      c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : c[i * ldc + j]);
    }
}

} // namespace trainc
