// SPDX-License-Identifier: Apache-2.0
//
// Measures algorithms for a product on memory of its own.
#pragma once

#include "runtime/cuda/products/product_plan.h"

#include <vector>

namespace trainc {

class product_timing {
public:
  explicit product_timing(cudaStream_t stream) : stream_(stream) {}
  ~product_timing();
  product_timing(const product_timing &) = delete;
  product_timing &operator=(const product_timing &) = delete;

  // The fastest of the algorithms, which all fit the plan.
  cublasLtMatmulAlgo_t fastest(cublasLtHandle_t library, product_plan &plan,
                               const std::vector<cublasLtMatmulAlgo_t> &algorithms);

private:
  product_operands place(const product_plan &plan);
  void reserve(int64_t bytes);
  float milliseconds(cublasLtHandle_t library, product_plan &plan, const product_operands &operands,
                     float best);
  void warm_up(cublasLtHandle_t library, product_plan &plan, const product_operands &operands);

  cudaStream_t stream_;
  bool is_warm_ = false;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  char *memory_ = nullptr;
  int64_t bytes_ = 0;
};

} // namespace trainc
