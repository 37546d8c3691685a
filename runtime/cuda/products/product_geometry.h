// SPDX-License-Identifier: Apache-2.0
//
// A batched product of runtime/kernels/matmul.h as cuBLASLt takes it: column-major
// matrices, one batch dimension with a stride, and a loop over what is left.
#pragma once

#include "runtime/kernels/matmul.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainc {

// Of cuBLASLt's three matrices, as they are stored.
struct column_major_matrix {
  bool transposed = false; // before the multiplication
  int64_t rows = 0, columns = 0, leading = 0;
  int64_t batch_stride = 0;
};

// One dimension of the batch that cuBLASLt cannot walk itself.
struct batch_loop {
  int64_t size;
  int64_t a_stride, b_stride, c_stride;
};

struct product_geometry {
  // A row-major result is computed as its transpose: c' = b' a'. Then `left` is b.
  bool swapped = false;
  column_major_matrix left, right, result;
  int64_t k = 0;
  int64_t batch = 1;
  std::vector<batch_loop> loops;

  // Elements from the first one that any matrix of the operand touches to after the last.
  int64_t a_extent = 0, b_extent = 0, c_extent = 0;
};

product_geometry geometry_of(const matmul_shape &shape);

// The part of an algorithm's choice that the geometry decides, as text.
std::string geometry_text(const product_geometry &geometry);

// Largest power of two, at most 64, that divides the address of every matrix of the
// operand. 64 is what every tensor of a program has; no algorithm wants more.
int64_t operand_alignment(const matmul_shape &shape, const matrix_layout &matrix,
                          const void *address, int64_t element_bytes);

} // namespace trainc
