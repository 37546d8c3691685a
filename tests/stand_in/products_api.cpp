// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt's functions. What the real library would refuse is refused.
#include "errors.h"
#include "memory.h"
#include "operations.h"
#include "products.h"
#include "settings.h"

#include <algorithm>
#include <cstring>

using namespace trainc::stand_in;

struct cublasLtContext {
  int unused;
};

namespace {

struct status_row {
  cublasStatus_t status;
  const char *name, *text;
};
constexpr status_row status_table[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires an architectural feature absent from the device"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality requested is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR",
     "the functionality requested requires some license"},
};

const status_row &row_of(cublasStatus_t status) {
  for (const status_row &row : status_table)
    if (row.status == status)
      return row;
  return status_table[7];
}

template <typename T> cublasStatus_t assign(T &to, const void *value, size_t bytes) {
  if (value == nullptr || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

struct problem_size {
  uint64_t m, n, k;
};

bool shapes_agree(const cublasLtMatmulDescription &by, const cublasLtMatrixDescription &a,
                  const cublasLtMatrixDescription &b, const cublasLtMatrixDescription &c,
                  const cublasLtMatrixDescription &d) {
  const bool ta = by.transpose_a != CUBLAS_OP_N, tb = by.transpose_b != CUBLAS_OP_N;
  return (ta ? a.columns : a.rows) == d.rows && (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && c.rows == d.rows &&
         c.columns == d.columns && c.order == d.order && a.batch == d.batch && b.batch == d.batch &&
         c.batch == d.batch;
}

bool leading_is_enough(const cublasLtMatrixDescription &m) {
  const uint64_t least = m.order == CUBLASLT_ORDER_COL ? m.rows : m.columns;
  return m.rows > 0 && m.columns > 0 && m.leading >= static_cast<int64_t>(least);
}

// As cuBLASLt documents its epilogues: vectors and matrices beside the result have its type.
bool epilogue_is_supported(const cublasLtMatmulDescription &by,
                           const cublasLtMatrixDescription &d) {
  if (by.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
    return true;
  if (options().no_epilogues || d.type == CUDA_R_64F || d.order != CUBLASLT_ORDER_COL)
    return false;
  constexpr int auxiliary_flag = 128, auxiliary_multiple = 8;
  const bool auxiliary = (by.epilogue & auxiliary_flag) != 0;
  const bool bias = (by.epilogue & (4 | 16 | 256 | 512)) != 0;
  if (bias && by.bias == nullptr)
    return false;
  return !auxiliary || (by.auxiliary != nullptr && by.auxiliary_leading % auxiliary_multiple == 0 &&
                        by.auxiliary_leading >= static_cast<int64_t>(d.rows) &&
                        reinterpret_cast<uintptr_t>(by.auxiliary) % 16 == 0);
}

cublasStatus_t check(const cublasLtMatmulDescription *by, const cublasLtMatrixDescription *a,
                     const cublasLtMatrixDescription *b, const cublasLtMatrixDescription *c,
                     const cublasLtMatrixDescription *d) {
  if (by == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const auto *matrix : {a, b, c, d})
    if (!leading_is_enough(*matrix))
      return CUBLAS_STATUS_INVALID_VALUE;
  if (!shapes_agree(*by, *a, *b, *c, *d))
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaDataType scale = by->compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F;
  // Operands of 16 bits have a result of those or of f32, and no other compute type.
  const bool is_narrow = size_of(a->type) == 2 && by->compute == CUBLAS_COMPUTE_32F;
  if ((!is_narrow && a->type != scale) || b->type != a->type || c->type != d->type ||
      (d->type != scale && d->type != a->type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (by->scale != scale || by->pointers != CUBLASLT_POINTER_MODE_HOST)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return epilogue_is_supported(*by, *d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

constexpr uint64_t algorithm_mark = 0x7374616e642d696e; // of an algorithm that is ours
constexpr int algorithms = 2;                           // that a search finds; equal in every bit

bool is_ours(const cublasLtMatmulAlgo_t &algorithm) {
  return algorithm.data[0] == algorithm_mark && algorithm.data[1] < algorithms;
}

double scalar(const void *value, cudaDataType type) {
  if (type == CUDA_R_64F)
    return *static_cast<const double *>(value);
  return *static_cast<const float *>(value);
}

bool aligned(const void *pointer, cudaDataType type) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(size_of(type)) == 0;
}

} // namespace

extern "C" {

const char *cublasGetStatusName(cublasStatus_t status) { return row_of(status).name; }
const char *cublasGetStatusString(cublasStatus_t status) { return row_of(status).text; }
const char *cublasLtGetStatusName(cublasStatus_t status) { return row_of(status).name; }
const char *cublasLtGetStatusString(cublasStatus_t status) { return row_of(status).text; }
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (options().cublas_fails || device_problem() != cudaSuccess)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  *description = new cublasLtMatmulDescription;
  (*description)->compute = compute;
  (*description)->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  cudaDataType type = CUDA_R_32F;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
    return assign(description->compute, value, bytes);
  case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
    return assign(description->scale, value, bytes);
  case CUBLASLT_MATMUL_DESC_POINTER_MODE:
    return assign(description->pointers, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return assign(description->transpose_a, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return assign(description->transpose_b, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return assign(description->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return assign(description->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return assign(description->bias_batch_stride, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return assign(description->auxiliary, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return assign(description->auxiliary_leading, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
    return assign(description->auxiliary_batch_stride, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: {
    const cublasStatus_t status = assign(type, value, bytes);
    return status == CUBLAS_STATUS_SUCCESS && type != CUDA_R_32F ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                 : status;
  }
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new cublasLtMatrixDescription{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_TYPE:
    return assign(layout->type, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    return assign(layout->order, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return assign(layout->rows, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return assign(layout->columns, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return assign(layout->leading, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return assign(layout->batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return assign(layout->batch_stride, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_BATCH_MODE:
    return assign(layout->batch_mode, value, bytes);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = new cublasLtPreferenceDescription;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return assign(preference->workspace_bytes, value, bytes);
  return value != nullptr && bytes == 4 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned_count) {
  *returned_count = 0;
  if (const cublasStatus_t status = check(description, a, b, c, d); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (preference == nullptr || preference->workspace_bytes < workspace_bytes)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *returned_count < std::min(requested, algorithms); ++*returned_count) {
    cublasLtMatmulHeuristicResult_t &result = results[*returned_count];
    result = {};
    result.algo.data[0] = algorithm_mark;
    result.algo.data[1] = static_cast<uint64_t>(*returned_count);
    result.workspaceSize = workspace_bytes;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result) {
  if (algorithm == nullptr || !is_ours(*algorithm))
    return CUBLAS_STATUS_INVALID_VALUE;
  *result = {};
  result->algo = *algorithm;
  result->workspaceSize = workspace_bytes;
  return result->state = check(description, a, b, c, d);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t bytes, size_t *written) {
  if (!is_ours(*algorithm) || bytes != sizeof(int32_t))
    return CUBLAS_STATUS_INVALID_VALUE;
  const int32_t number = attribute == CUBLASLT_ALGO_CONFIG_ID
                             ? static_cast<int32_t>(algorithm->data[1])
                         : attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1
                                                                        : 0;
  std::memcpy(value, &number, sizeof number);
  if (written != nullptr)
    *written = sizeof number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream) {
  if (handle == nullptr)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (const cublasStatus_t status = check(description, a_layout, b_layout, c_layout, d_layout);
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if ((algorithm != nullptr && !is_ours(*algorithm)) || bytes < workspace_bytes ||
      reinterpret_cast<uintptr_t>(workspace) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!aligned(a, a_layout->type) || !aligned(b, b_layout->type) || !aligned(d, d_layout->type))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_device(workspace) || !is_allocated(workspace, bytes))
    return CUBLAS_STATUS_MAPPING_ERROR;
  const product p = {*description,
                     *a_layout,
                     *b_layout,
                     *c_layout,
                     *d_layout,
                     static_cast<const char *>(a),
                     static_cast<const char *>(b),
                     static_cast<const char *>(c),
                     static_cast<char *>(d),
                     scalar(alpha, description->scale),
                     scalar(beta, description->scale),
                     static_cast<char *>(workspace)};
  return queue(stream, {"matrix product"}, [=] { compute(p); }) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
