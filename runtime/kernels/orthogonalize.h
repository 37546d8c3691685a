// SPDX-License-Identifier: Apache-2.0
//
// Newton and Schulz's iteration for matrices, as the optimizer Muon has it.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace trainc {

// The factors of the polynomial a x + b x^3 + c x^5 of the singular values (Jordan et al. 2024).
constexpr double newton_schulz_a = 3.4445, newton_schulz_b = -4.7750, newton_schulz_c = 2.0315;
constexpr int64_t newton_schulz_steps = 5;
// What a matrix is divided by at least.
constexpr double newton_schulz_least_norm = 1e-7;

// The matrix's sum of squares has so many parts, which are added up in order.
constexpr int64_t orthogonalize_pieces = 256;

// `matrices` has three numbers of each: where it begins in x, rows and columns. The result is x,
// but the matrices become near the closest ones with orthonormal rows or columns. The order of
// every sum follows from the shapes. `scratch` holds orthogonalize_scratch(...) elements.
void orthogonalize(std::initializer_list<int64_t> matrices, int64_t elements, const float *x,
                   float *result, float *scratch);
void orthogonalize(std::initializer_list<int64_t> matrices, int64_t elements, const double *x,
                   double *result, double *scratch);

// Where the scratch has what, in elements: the pieces' sums and the norm (f64), then X X^T and what
// follows from it, both squares of the shorter side, then a matrix like X; each at a cache line.
struct orthogonalize_places {
  int64_t gram, mixed, next, end;
};
constexpr orthogonalize_places orthogonalize_scratch(int64_t rows, int64_t columns) {
  auto aligned = [](int64_t elements) { return (elements + 15) / 16 * 16; };
  const int64_t shorter = rows < columns ? rows : columns;
  const int64_t gram = aligned(2 * (orthogonalize_pieces + 1));
  const int64_t mixed = gram + aligned(shorter * shorter),
                next = mixed + aligned(shorter * shorter);
  return {gram, mixed, next, next + aligned(rows * columns)};
}

} // namespace trainc
