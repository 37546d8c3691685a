// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of f32 where there is no math library: blocks of the right side are copied to the
// stack, a few rows of the left side meet a block at a time, and what they add up stays in
// registers. The sum over k goes in order.
#include "runtime/cpu/row_products.h"

#include <algorithm>

// A multiplication and an addition as one operation where the processor has it: half the time.
#pragma GCC optimize("fp-contract=fast")

namespace trainc {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16; // NEON, SSE
#endif
typedef float vector __attribute__((vector_size(vector_bytes)));

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(float));
constexpr int block_rows = 6,
              block_columns = std::max(16, 2 * lanes); // of the result: in registers
constexpr int vectors_of_row = block_columns / lanes;
constexpr int64_t block_k = 256;

struct operand {
  const float *data;
  int64_t row_stride, column_stride;
};

// As many of b as a block has; zeros where the matrix ends.
using packed = float[block_k][block_columns];

void pack(packed &to, const operand &b, int64_t k, int64_t columns) {
  for (int64_t l = 0; l < k; ++l) {
    const float *row = b.data + l * b.row_stride;
    for (int64_t j = 0; j < columns; ++j)
      to[l][j] = row[j * b.column_stride];
    std::fill(to[l] + columns, to[l] + block_columns, 0.0f);
  }
}

// c = alpha a b + beta c of one block; the rows of a after its last one are that one.
void multiply_block(int64_t rows, int64_t columns, int64_t k, float alpha, const operand &a,
                    const packed &b, float beta, float *c, int64_t ldc) {
  const float *of_row[block_rows];
  for (int64_t i = 0; i < block_rows; ++i)
    of_row[i] = a.data + std::min(i, rows - 1) * a.row_stride;
  vector sums[block_rows][vectors_of_row] = {};
  for (int64_t l = 0; l < k; ++l) {
    const auto *right = reinterpret_cast<const vector *>(b[l]);
#pragma GCC unroll 8
    for (int i = 0; i < block_rows; ++i) {
      const float left = of_row[i][l * a.column_stride];
#pragma GCC unroll 8
      for (int v = 0; v < vectors_of_row; ++v)
        sums[i][v] += left * right[v];
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const auto *row = reinterpret_cast<const float *>(sums[i]);
    for (int64_t j = 0; j < columns; ++j)
      c[i * ldc + j] = alpha * row[j] + (beta == 0 ? 0 : beta * c[i * ldc + j]);
  }
}

} // namespace

void multiply_rows(char op_a, char op_b, int64_t m, int64_t n, int64_t k, double alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                   int64_t ldc) {
  const operand left = {a, op_a == 'T' ? 1 : lda, op_a == 'T' ? lda : 1};
  const operand right = {b, op_b == 'T' ? 1 : ldb, op_b == 'T' ? ldb : 1};
  alignas(64) packed block;
  for (int64_t column = 0; column < n; column += block_columns) {
    const int64_t columns = std::min<int64_t>(block_columns, n - column);
    for (int64_t first = 0; first == 0 || first < k; first += block_k) {
      const int64_t depth = std::min(block_k, k - first);
      pack(block,
           {right.data + first * right.row_stride + column * right.column_stride, right.row_stride,
            right.column_stride},
           depth, columns);
      for (int64_t row = 0; row < m; row += block_rows)
        multiply_block(std::min<int64_t>(block_rows, m - row), columns, depth,
                       static_cast<float>(alpha),
                       {left.data + row * left.row_stride + first * left.column_stride,
                        left.row_stride, left.column_stride},
                       block, first == 0 ? beta : 1, c + row * ldc + column, ldc);
    }
  }
}

} // namespace trainc
