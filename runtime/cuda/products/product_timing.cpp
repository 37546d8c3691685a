// SPDX-License-Identifier: Apache-2.0
//
// Where a product's operands lie while it is measured.
#include "runtime/cuda/products/product_timing.h"

#include "runtime/cuda/products/matmul.h"

#include <algorithm>

namespace trainc {

// The workspace comes first, then the operands, filled anew: c is overwritten.
product_operands product_timing::place(const product_plan &plan) {
  const product_geometry &geometry = plan.geometry();
  const matmul_shape &shape = plan.key().shape;
  const int64_t element = bytes_of(plan.key().operands), result = bytes_of(plan.key().result);
  const int64_t sizes[] = {block_size((shape.a.offset + geometry.a_extent) * element),
                           block_size((shape.b.offset + geometry.b_extent) * element),
                           block_size((shape.c.offset + geometry.c_extent) * result),
                           block_size(std::max(shape.m, shape.n) * result),
                           block_size(shape.m * shape.n * result)};
  int64_t operand_bytes = 0;
  for (int64_t size : sizes)
    operand_bytes += size;
  workspace_ = timing_.reserve(product_workspace_bytes + operand_bytes);
  char *operands = workspace_ + product_workspace_bytes;
  timing_.fill(operands, operand_bytes, plan.key().operands);

  char *addresses[5];
  for (int i = 0; i < 5; ++i) {
    const int64_t alignment = plan.key().alignment[i];
    addresses[i] = alignment == 0 ? nullptr : operands + alignment % 64;
    operands += sizes[i];
  }
  return {addresses[0], addresses[1], addresses[2], addresses[3], addresses[4]};
}

const product_way &product_timing::fastest(cublasLtHandle_t library,
                                           const std::vector<product_way> &ways) {
  const product_operands operands = place(*ways.front().plan);
  return ways[timing_.fastest(ways.size(), [&](size_t i) {
    ways[i].plan->adopt(ways[i].algorithm);
    ways[i].plan->run(library, operands, workspace_, stream_);
  })];
}

} // namespace trainc
