// SPDX-License-Identifier: Apache-2.0
//
// Measures algorithms for a product on memory of its own.
#pragma once

#include "runtime/cuda/products/device_timing.h"

#include <vector>

namespace trainc {

class product_timing {
public:
  explicit product_timing(cudaStream_t stream)
      : stream_(stream), timing_(stream, "matrix products") {}

  // The fastest of the algorithms, which all fit the plan.
  cublasLtMatmulAlgo_t fastest(cublasLtHandle_t library, product_plan &plan,
                               const std::vector<cublasLtMatmulAlgo_t> &algorithms);

private:
  product_operands place(const product_plan &plan);

  cudaStream_t stream_;
  device_timing timing_;
  char *workspace_ = nullptr;
};

} // namespace trainc
