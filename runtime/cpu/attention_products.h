// SPDX-License-Identifier: Apache-2.0
//
// The products of attention's tiles: c = alpha op(a) op(b) + beta c, of rows as they lie; 'T'
// transposes. Each is computed by the thread that calls.
#pragma once

#include "runtime/cpu/bfloat16_product.h"

#include <compare>
#include <map>
#include <stdexcept>
#include <string>

namespace trainc {

inline void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                          const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                          float *c, int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(op_a, op_b, m, n, k, static_cast<float>(alpha), a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN refused a product of attention, status " +
                             std::to_string(static_cast<int>(status)));
}

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

// ---- of bf16

struct bfloat16_rows {
  bool transposes_a, transposes_b, adds;
  int64_t m, n, k, lda, ldb, ldc;
  auto operator<=>(const bfloat16_rows &) const = default;

  bfloat16_product make() const {
    using dnnl::memory;
    const auto layout = [](int64_t rows, int64_t columns, int64_t leading, bool transposes,
                           memory::data_type type) {
      return memory::desc({rows, columns}, type,
                          transposes ? memory::dims{1, leading} : memory::dims{leading, 1});
    };
    return {layout(m, k, lda, transposes_a, memory::data_type::bf16),
            layout(k, n, ldb, transposes_b, memory::data_type::bf16),
            layout(m, n, ldc, false, memory::data_type::f32), adds};
  }
};

// alpha is 1: oneDNN multiplies by another one slowly.
inline void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double /*alpha*/,
                          const bfloat16 *a, int64_t lda, const bfloat16 *b, int64_t ldb,
                          float beta, float *c, int64_t ldc) {
  thread_local std::map<bfloat16_rows, bfloat16_product> known; // few: tiles are full or the last
  const bfloat16_rows rows = {op_a == 'T', op_b == 'T', beta != 0, m, n, k, lda, ldb, ldc};
  auto found = known.find(rows);
  if (found == known.end())
    found = known.emplace(rows, rows.make()).first;
  found->second.run(a, b, c);
}

} // namespace trainc
