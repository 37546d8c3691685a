// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's functions. What the real library would refuse is refused, and what a trainer must not
// use ends the program: algorithms whose bits differ from run to run, and those of other sums.
#include "convolutions.h"
#include "errors.h"
#include "memory.h"
#include "operations.h"
#include "report.h"
#include "settings.h"

#include <algorithm>

using namespace trainc::stand_in;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

constexpr size_t small_workspace = 640, large_workspace = size_t{1} << 40; // bytes

// What a search finds, in this order.
template <typename Algorithm> struct algorithm_row {
  Algorithm algorithm;
  cudnnDeterminism_t determinism;
  bool is_exact; // sums products of the operands
  size_t workspace;
};
constexpr algorithm_row<cudnnConvolutionFwdAlgo_t> forward_rows[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_DETERMINISTIC, false, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_DETERMINISTIC, true, large_workspace},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_DETERMINISTIC, true, small_workspace},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_DETERMINISTIC, true, small_workspace},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_DETERMINISTIC, true, 0},
};
constexpr algorithm_row<cudnnConvolutionBwdDataAlgo_t> data_rows[] = {
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_NON_DETERMINISTIC, true, 0},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_DETERMINISTIC, false, small_workspace},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_DETERMINISTIC, true, small_workspace},
};
constexpr algorithm_row<cudnnConvolutionBwdFilterAlgo_t> filter_rows[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_NON_DETERMINISTIC, true, 0},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_NON_DETERMINISTIC, true, 0},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_DETERMINISTIC, false, small_workspace},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_DETERMINISTIC, true, small_workspace},
};

template <typename Algorithm, size_t count>
const algorithm_row<Algorithm> *row_of(const algorithm_row<Algorithm> (&rows)[count],
                                       Algorithm algorithm) {
  for (const auto &row : rows)
    if (row.algorithm == algorithm)
      return &row;
  return nullptr;
}

bool is_described(const cudnnTensorStruct &tensor) {
  int stride = 1;
  for (size_t d = tensor.sizes.size(); d-- > 0; stride *= tensor.sizes[d])
    if (tensor.sizes[d] <= 0 || tensor.strides[d] != stride)
      return false;
  return tensor.sizes.size() >= 4;
}

cudnnStatus_t check(const cudnnTensorStruct *x, const cudnnFilterStruct *w,
                    const cudnnConvolutionStruct *by, const cudnnTensorStruct *y) {
  if (x == nullptr || w == nullptr || by == nullptr || y == nullptr)
    return CUDNN_STATUS_BAD_PARAM;
  const size_t rank = by->pads.size();
  if (!is_described(*x) || !is_described(*y) || x->sizes.size() != rank + 2 ||
      y->sizes.size() != rank + 2 || w->sizes.size() != rank + 2 || by->groups <= 0 ||
      w->sizes[0] % by->groups != 0 || x->sizes[1] != w->sizes[1] * by->groups ||
      y->sizes[1] != w->sizes[0] || x->sizes[0] != y->sizes[0])
    return CUDNN_STATUS_BAD_PARAM;
  for (size_t d = 0; d < rank; ++d) {
    const int room =
        x->sizes[d + 2] + 2 * by->pads[d] - (w->sizes[d + 2] - 1) * by->dilations[d] - 1;
    if (room < 0 || room / by->strides[d] + 1 != y->sizes[d + 2])
      return CUDNN_STATUS_BAD_PARAM;
  }
  const cudnnDataType_t sums = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return x->type == w->type && x->type == y->type && by->type == sums ? CUDNN_STATUS_SUCCESS
                                                                      : CUDNN_STATUS_NOT_SUPPORTED;
}

template <typename Algorithm, size_t count>
cudnnStatus_t propose(cudnnStatus_t status, const algorithm_row<Algorithm> (&rows)[count],
                      int requested, int *returned, cudnnStandInPerformance<Algorithm> *results) {
  *returned = 0;
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  for (; *returned < std::min(requested, static_cast<int>(count)); ++*returned) {
    const auto &row = rows[*returned];
    results[*returned] = {};
    results[*returned].algo = row.algorithm;
    results[*returned].time = -1;
    results[*returned].memory = row.workspace;
    results[*returned].determinism = row.determinism;
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename Algorithm>
cudnnStatus_t workspace_size(cudnnStatus_t status, const algorithm_row<Algorithm> *row,
                             size_t *bytes) {
  if (status != CUDNN_STATUS_SUCCESS || row == nullptr)
    return status != CUDNN_STATUS_SUCCESS ? status : CUDNN_STATUS_BAD_PARAM;
  *bytes = row->workspace;
  return CUDNN_STATUS_SUCCESS;
}

double scalar(const void *value, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double *>(value)
                                   : *static_cast<const float *>(value);
}

bool aligned(const void *pointer, cudnnDataType_t type) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(size_of(type)) == 0;
}

template <typename Algorithm>
cudnnStatus_t queue_convolution(cudnnHandle_t handle, convolution c,
                                const algorithm_row<Algorithm> *row, void *workspace,
                                size_t bytes) {
  if (handle == nullptr)
    return CUDNN_STATUS_NOT_INITIALIZED;
  const cudnnStatus_t status = check(&c.x_layout, &c.w_layout, &c.description, &c.y_layout);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  if (row == nullptr || bytes < row->workspace)
    return CUDNN_STATUS_BAD_PARAM;
  if (row->determinism != CUDNN_DETERMINISTIC || !row->is_exact)
    fail("cuDNN", "an algorithm whose bits may differ, or whose sums are of other products");
  if (row->workspace > 0 &&
      (reinterpret_cast<uintptr_t>(workspace) % 16 != 0 || !is_allocated(workspace, bytes)))
    return CUDNN_STATUS_BAD_PARAM;
  for (const char *tensor : {c.x, c.w, c.y})
    if (!aligned(tensor, c.x_layout.type))
      return CUDNN_STATUS_BAD_PARAM;
  c.workspace = static_cast<char *>(workspace);
  c.workspace_bytes = row->workspace;
  return queue(handle->stream, {"convolution"}, [c] { compute(c); }) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

char *bytes_at(const void *data) { return static_cast<char *>(const_cast<void *>(data)); }

template <typename Struct> cudnnStatus_t create(Struct **description) {
  *description = new Struct;
  return CUDNN_STATUS_SUCCESS;
}
template <typename Struct> cudnnStatus_t destroy(Struct *description) {
  delete description;
  return CUDNN_STATUS_SUCCESS;
}

} // namespace

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_STATUS_INTERNAL_ERROR";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  if (options().cudnn_fails || device_problem() != cudaSuccess)
    return CUDNN_STATUS_NOT_INITIALIZED;
  return create(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return destroy(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor) {
  return create(tensor);
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int dimensions, const int sizes[], const int strides[]) {
  *tensor = {type, {sizes, sizes + dimensions}, {strides, strides + dimensions}};
  return dimensions >= 4 ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy(tensor);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter) {
  return create(filter);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dimensions,
                                         const int sizes[]) {
  *filter = {type, format, {sizes, sizes + dimensions}};
  return dimensions >= 4 && format == CUDNN_TENSOR_NCHW ? CUDNN_STATUS_SUCCESS
                                                        : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return destroy(filter);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution) {
  return create(convolution);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convolution,
                                              int dimensions, const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  convolution->pads.assign(pads, pads + dimensions);
  convolution->strides.assign(strides, strides + dimensions);
  convolution->dilations.assign(dilations, dilations + dimensions);
  convolution->type = type;
  return mode == CUDNN_CROSS_CORRELATION ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int count) {
  convolution->groups = count;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                                          cudnnMathType_t math) {
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return destroy(convolution);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t convolution,
                                                     cudnnTensorDescriptor_t y, int requested,
                                                     int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *results) {
  return propose(check(x, w, convolution, y), forward_rows, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w,
                                                      cudnnConvolutionDescriptor_t convolution,
                                                      cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm,
                                                      size_t *bytes) {
  return workspace_size(check(x, w, convolution, y), row_of(forward_rows, algorithm), bytes);
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      cudnnTensorDescriptor_t x_layout, const void *x,
                                      cudnnFilterDescriptor_t w_layout, const void *w,
                                      cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
                                      size_t bytes, const void *beta,
                                      cudnnTensorDescriptor_t y_layout, void *y) {
  return queue_convolution(handle,
                           {convolution_side::y, *x_layout, *y_layout, *w_layout, *convolution,
                            bytes_at(x), bytes_at(w), bytes_at(y), scalar(alpha, convolution->type),
                            scalar(beta, convolution->type), nullptr, 0},
                           row_of(forward_rows, algorithm), workspace, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx, int requested,
    int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results) {
  return propose(check(dx, w, convolution, dy), data_rows, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t convolution,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm,
                                                           size_t *bytes) {
  return workspace_size(check(dx, w, convolution, dy), row_of(data_rows, algorithm), bytes);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           cudnnFilterDescriptor_t w_layout, const void *w,
                                           cudnnTensorDescriptor_t dy_layout, const void *dy,
                                           cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
                                           size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_layout, void *dx) {
  return queue_convolution(handle,
                           {convolution_side::x, *dx_layout, *dy_layout, *w_layout, *convolution,
                            bytes_at(dx), bytes_at(w), bytes_at(dy),
                            scalar(alpha, convolution->type), scalar(beta, convolution->type),
                            nullptr, 0},
                           row_of(data_rows, algorithm), workspace, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw, int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results) {
  return propose(check(x, dw, convolution, dy), filter_rows, requested, returned, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes) {
  return workspace_size(check(x, dw, convolution, dy), row_of(filter_rows, algorithm), bytes);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             cudnnTensorDescriptor_t x_layout, const void *x,
                                             cudnnTensorDescriptor_t dy_layout, const void *dy,
                                             cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void *workspace, size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_layout, void *dw) {
  return queue_convolution(handle,
                           {convolution_side::w, *x_layout, *dy_layout, *dw_layout, *convolution,
                            bytes_at(x), bytes_at(dw), bytes_at(dy),
                            scalar(alpha, convolution->type), scalar(beta, convolution->type),
                            nullptr, 0},
                           row_of(filter_rows, algorithm), workspace, bytes);
}
}
