// SPDX-License-Identifier: Apache-2.0
//
// What cuBLASLt does with a product before it writes it, done after it: where the library has no
// algorithm with an epilogue, or a slower one. It reads and writes the result once more.
#pragma once

#include "runtime/cuda/products/product_plan.h"

namespace trainc {

// Queues it on compute_stream(). `operands.c` holds the product. Sums are in a fixed order.
// `workspace` has product_workspace_bytes, which the product does not need any more.
void queue_epilogue(const product_key &key, const product_operands &operands, char *workspace);

// Loads the kernels, so that none is loaded in the middle of a step; cudaSuccess or why not.
cudaError_t find_epilogue_kernels();

} // namespace trainc
