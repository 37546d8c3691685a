// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of matrix products as cuBLASLt's callers give them, and one product
// computed from them.
#pragma once

#include "cublasLt.h"

struct cublasLtMatrixDescription {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  int32_t batch = 1;
  int64_t batch_stride = 0;
  cublasLtBatchMode_t batch_mode = CUBLASLT_BATCH_MODE_STRIDED;
};

struct cublasLtMatmulDescription {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
  int64_t bias_batch_stride = 0;
  void *auxiliary = nullptr;
  int64_t auxiliary_leading = 0, auxiliary_batch_stride = 0;
};

struct cublasLtPreferenceDescription {
  uint64_t workspace_bytes = 0;
};

namespace trainc::stand_in {

struct product {
  cublasLtMatmulDescription description;
  cublasLtMatrixDescription a_layout, b_layout, c_layout, d_layout;
  const char *a, *b, *c;
  char *d;
  double alpha, beta;
  char *workspace;
};

constexpr int64_t size_of(cudaDataType type) { // of an element, in bytes
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

constexpr size_t workspace_bytes = 4096; // what every product here asks for

// As an operation on a stream.
void compute(const product &p);

} // namespace trainc::stand_in
