// SPDX-License-Identifier: Apache-2.0
//
// The functions of orthogonalize.h out of matmul and a target's templates `copy_elements`,
// `divide_by_norm` and `mix`. X is the matrix or, where it has more rows than columns, its
// transpose.
#pragma once

#include "runtime/kernels/matmul.h"
#include "runtime/kernels/orthogonalize.h"

namespace trainc {

struct orthogonalize_products {
  matmul_shape gram, square, next; // X X^T, of that with itself, times X
};

inline orthogonalize_products products_of(int64_t rows, int64_t columns) {
  const bool tall = rows > columns;
  const int64_t m = tall ? columns : rows, n = tall ? rows : columns;
  auto matrix = [](int64_t row_stride, int64_t column_stride) {
    matrix_layout layout;
    layout.row_stride = row_stride;
    layout.column_stride = column_stride;
    return layout;
  };
  auto product = [](int64_t rows_of, int64_t columns_of, int64_t inner, const matrix_layout &a,
                    const matrix_layout &b, const matrix_layout &c) {
    matmul_shape shape;
    shape.m = rows_of;
    shape.n = columns_of;
    shape.k = inner;
    shape.a = a;
    shape.b = b;
    shape.c = c;
    return shape;
  };
  const matrix_layout x = tall ? matrix(1, columns) : matrix(columns, 1);
  const matrix_layout transposed = matrix(x.column_stride, x.row_stride), square = matrix(m, 1);
  return {product(m, m, n, x, transposed, square), product(m, m, m, square, square, square),
          product(m, n, m, square, x, x)};
}

} // namespace trainc

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define DEFINE_ORTHOGONALIZE_OF(T)                                                                 \
  void orthogonalize(std::initializer_list<int64_t> matrices, int64_t elements, const T *x,        \
                     T *result, T *scratch) {                                                      \
    copy_elements(elements, x, result);                                                            \
    for (const int64_t *at = matrices.begin(); at != matrices.end(); at += 3) {                    \
      const int64_t rows = at[1], columns = at[2];                                                 \
      const orthogonalize_places places = orthogonalize_scratch(rows, columns);                    \
      const orthogonalize_products products = products_of(rows, columns);                          \
      T *matrix = result + at[0], *gram = scratch + places.gram;                                   \
      T *mixed = scratch + places.mixed, *next = scratch + places.next;                            \
      divide_by_norm(rows *columns, matrix, reinterpret_cast<double *>(scratch));                  \
      for (int64_t step = 0; step < newton_schulz_steps; ++step) {                                 \
        matmul(products.gram, matrix, matrix, gram);                                               \
        matmul(products.square, gram, gram, mixed);                                                \
        mix(products.square.m *products.square.n, gram, newton_schulz_b, mixed, newton_schulz_c,   \
            mixed);                                                                                \
        matmul(products.next, mixed, matrix, next);                                                \
        mix(rows *columns, matrix, newton_schulz_a, next, 1.0, matrix);                            \
      }                                                                                            \
    }                                                                                              \
  }
// NOLINTEND(bugprone-macro-parentheses)

#define DEFINE_ORTHOGONALIZE                                                                       \
  DEFINE_ORTHOGONALIZE_OF(float)                                                                   \
  DEFINE_ORTHOGONALIZE_OF(double)
