// SPDX-License-Identifier: Apache-2.0
//
// Measures algorithms for a product on memory of its own.
#pragma once

#include "runtime/cuda/products/device_timing.h"

#include <vector>

namespace trainc {

// A way to compute a product.
struct product_way {
  product_plan *plan; // that takes the algorithm
  cublasLtMatmulAlgo_t algorithm;
};

class product_timing {
public:
  explicit product_timing(cudaStream_t stream)
      : stream_(stream), timing_(stream, "matrix products") {}

  // The fastest of the ways, whose plans are of one product.
  const product_way &fastest(cublasLtHandle_t library, const std::vector<product_way> &ways);

private:
  product_operands place(const product_plan &plan);

  cudaStream_t stream_;
  device_timing timing_;
  char *workspace_ = nullptr;
};

} // namespace trainc
