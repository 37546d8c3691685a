// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of cuDNN on a small case, and what is refused. All kinds against plain loops are in
// runtime/convolution_test.cpp.
#include "test_kernels.h"

#include <cudnn.h>

namespace trainc::stand_in {
namespace {

// Rows of 4 numbers, one channel each, and a kernel of 2 of them: results of 3.
struct convolution_call {
  cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  cudnnMathType_t math = CUDNN_FMA_MATH;
  int columns = 3; // of the result
  size_t workspace_bytes = 1024;

  cudnnStatus_t run(const device_buffer<float> &x, const device_buffer<float> &w,
                    const device_buffer<float> &y) const {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x_layout, y_layout;
    cudnnFilterDescriptor_t w_layout;
    cudnnConvolutionDescriptor_t by;
    EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateTensorDescriptor(&x_layout), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateTensorDescriptor(&y_layout), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateFilterDescriptor(&w_layout), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnCreateConvolutionDescriptor(&by), CUDNN_STATUS_SUCCESS);
    const int of_x[] = {2, 1, 1, 4}, of_w[] = {1, 1, 1, 2}, of_y[] = {2, 1, 1, columns};
    const int steps_x[] = {4, 4, 4, 1}, steps_y[] = {columns, columns, columns, 1};
    const int ones[] = {1, 1}, zeros[] = {0, 0};
    cudnnSetTensorNdDescriptor(x_layout, CUDNN_DATA_FLOAT, 4, of_x, steps_x);
    cudnnSetTensorNdDescriptor(y_layout, CUDNN_DATA_FLOAT, 4, of_y, steps_y);
    cudnnSetFilterNdDescriptor(w_layout, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, of_w);
    cudnnSetConvolutionNdDescriptor(by, 2, zeros, ones, ones, CUDNN_CROSS_CORRELATION,
                                    CUDNN_DATA_FLOAT);
    cudnnSetConvolutionMathType(by, math);
    const device_buffer<float> workspace(256);
    const float one = 1, zero = 0;
    const cudnnStatus_t status =
        cudnnConvolutionForward(handle, &one, x_layout, x.data, w_layout, w.data, by, algorithm,
                                workspace.data, workspace_bytes, &zero, y_layout, y.data);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudnnDestroyTensorDescriptor(x_layout);
    cudnnDestroyTensorDescriptor(y_layout);
    cudnnDestroyFilterDescriptor(w_layout);
    cudnnDestroyConvolutionDescriptor(by);
    EXPECT_EQ(cudnnDestroy(handle), CUDNN_STATUS_SUCCESS);
    return status;
  }
};

struct Convolutions : testing::Test {
  device_buffer<float> x{8}, w{2}, y{6, false};
};

TEST_F(Convolutions, AreSumsOfProducts) {
  EXPECT_EQ(convolution_call().run(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.host(), (std::vector<float>{1, 2, 3, 5, 6, 7}));
}

TEST_F(Convolutions, RoundOperandsToTf32UnlessMathForbidsIt) {
  const float fine = 1 + 1.0f / (1 << 20), row[] = {fine, fine, fine, fine, 0, 0, 0, 0};
  ASSERT_EQ(cudaMemcpy(x.data, row, sizeof row, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(convolution_call().run(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.host()[0], fine);
  convolution_call rounding;
  rounding.math = CUDNN_DEFAULT_MATH;
  EXPECT_EQ(rounding.run(x, w, y), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y.host()[0], 1);
}

TEST_F(Convolutions, OfOtherSizesOrWithTooLittleMemoryAreRefused) {
  convolution_call call;
  call.columns = 4;
  EXPECT_EQ(call.run(x, w, y), CUDNN_STATUS_BAD_PARAM);
  call = {};
  call.workspace_bytes = 16;
  EXPECT_EQ(call.run(x, w, y), CUDNN_STATUS_BAD_PARAM);
}

TEST_F(Convolutions, OfForbiddenAlgorithmsEndTheProgram) {
  convolution_call call;
  call.algorithm = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
  EXPECT_FAULT(call.run(x, w, y), "sums are of other products");
}

TEST_F(Convolutions, ReadAndWriteWhatIsThere) {
  const device_buffer<float> small(2, false);
  EXPECT_FAULT(convolution_call().run(y, w, x), "tensor x"); // never written
  EXPECT_FAULT(convolution_call().run(x, w, small), "tensor y .* outside device memory");
  EXPECT_FAULT(convolution_call().run(x, w, x), "the result overlaps an operand");
}

} // namespace
} // namespace trainc::stand_in
