// SPDX-License-Identifier: Apache-2.0
//
// Descriptions of convolutions as cuDNN's callers give them, and one computed from them.
#pragma once

#include "cudnn.h"

#include <vector>

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> sizes, strides;
};

struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  std::vector<int> sizes;
};

struct cudnnConvolutionStruct {
  std::vector<int> pads, strides, dilations;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
};

namespace trainc::stand_in {

enum class convolution_side { y, x, w }; // which of the tensors is computed

struct convolution {
  convolution_side computed;
  cudnnTensorStruct x_layout, y_layout;
  cudnnFilterStruct w_layout;
  cudnnConvolutionStruct description;
  char *x, *w, *y;
  double alpha, beta;
  char *workspace;
  size_t workspace_bytes; // that the algorithm uses
};

constexpr int64_t size_of(cudnnDataType_t type) { // of an element, in bytes
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

// As an operation on a stream.
void compute(const convolution &c);

} // namespace trainc::stand_in
