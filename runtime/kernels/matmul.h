// SPDX-License-Identifier: Apache-2.0
//
// Batched matrix products on strided matrices.
#pragma once

#include "runtime/kernels/narrow_float.h"

#include <cstdint>
#include <type_traits>

namespace trainc {

constexpr int max_batch_rank = 6;

// Element (i, j) of batch (b...) is at
// offset + sum of b_d * batch_strides[d] + i * row_stride + j * column_stride.
// One of the two inner strides is 1 (or its dimension has size 1).
struct matrix_layout {
  int64_t offset = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int64_t batch_strides[max_batch_rank] = {};
  bool operator==(const matrix_layout &) const = default;
};

// c [m, n] = a [m, k] b [k, n] for every batch; `batch` holds sizes, 0 after the last.
struct matmul_shape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch[max_batch_rank] = {};
  matrix_layout a, b, c;
  bool operator==(const matmul_shape &) const = default;
};

// c = a b. The order of every sum follows from the shape alone.
void matmul(const matmul_shape &shape, const float *a, const float *b, float *c);
void matmul(const matmul_shape &shape, const double *a, const double *b, double *c);
// Products of bf16 and f16: sums are in f32, and rounded where c is as narrow as a and b.
// `shape` must stay where it is: what the product needs is made once for each.
template <typename Format, typename To>
void matmul(const matmul_shape &shape, const narrow_float<Format> *a, const narrow_float<Format> *b,
            To *c);

// c += a b.
void matmul_add(const matmul_shape &shape, const float *a, const float *b, float *c);
void matmul_add(const matmul_shape &shape, const double *a, const double *b, double *c);
template <typename Format>
void matmul_add(const matmul_shape &shape, const narrow_float<Format> *a,
                const narrow_float<Format> *b, float *c);

// ---- products which do more before they write c. Only runtime/cuda has them, for f32, bf16 and
// f16. One product, no batch; c is contiguous. Its lines lie along n where its columns have
// stride 1, else along m; `bias` and the sum of c are as long as a line.

// c = a b + bias
template <typename T>
void matmul_bias(const matmul_shape &shape, const T *a, const T *b, const T *bias, T *c);

// linear = a b + bias, c = gelu(linear), in GELU's tanh form. `bias` and `linear` (laid
// out like c) may be null. Lines are multiples of 8 elements.
template <typename T>
void matmul_gelu(const matmul_shape &shape, const T *a, const T *b,
                 const std::type_identity_t<T> *bias, T *c, std::type_identity_t<T> *linear);

// c = (a b) gelu'(linear), and the sum of c's lines; `sum` may be null, as it is in 16 bits.
template <typename T>
void matmul_gelu_gradient(const matmul_shape &shape, const T *a, const T *b, const T *linear, T *c,
                          std::type_identity_t<T> *sum);

// c = a b, and the sum of a or of b over k: m or n elements.
template <typename T>
void matmul_sum_a(const matmul_shape &shape, const T *a, const T *b, float *c, float *sum);
template <typename T>
void matmul_sum_b(const matmul_shape &shape, const T *a, const T *b, float *c, float *sum);

} // namespace trainc
