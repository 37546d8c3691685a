// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/row_products.h"

#include "runtime/cpu/bfloat16_product.h"

#include <compare>
#include <map>
#include <stdexcept>
#include <string>

namespace trainc {

void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc) {
  const dnnl_status_t status =
      dnnl_sgemm(op_a, op_b, m, n, k, static_cast<float>(alpha), a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success)
    throw std::runtime_error("oneDNN refused a matrix product, status " +
                             std::to_string(static_cast<int>(status)));
}

// AMX, and oneDNN may have the processor use it.
bool multiplies_bfloat16() {
  static const bool is_there = (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) &
                                dnnl_cpu_isa_avx512_core_amx) == dnnl_cpu_isa_avx512_core_amx;
  return is_there;
}

namespace {

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

} // namespace

void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double /*alpha*/,
                   const bfloat16 *a, int64_t lda, const bfloat16 *b, int64_t ldb, float beta,
                   float *c, int64_t ldc) {
  thread_local std::map<bfloat16_rows, bfloat16_product> known; // few: tiles are full or the last
  const bfloat16_rows rows = {op_a == 'T', op_b == 'T', beta != 0, m, n, k, lda, ldb, ldc};
  auto found = known.find(rows);
  if (found == known.end())
    found = known.emplace(rows, rows.make()).first;
  found->second.run(a, b, c);
}

} // namespace trainc
