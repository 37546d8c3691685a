// SPDX-License-Identifier: Apache-2.0
//
// The functions of cuDNN that convolutions call. They are looked up when a program starts, so that
// one program runs with cuDNN and without.
#pragma once

#include <cudnn.h>

#include <string>

namespace trainc {

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are names
#define FOR_CUDNN_CALLS(CALL)                                                                      \
  CALL(cudnnGetVersion)                                                                            \
  CALL(cudnnGetErrorString)                                                                        \
  CALL(cudnnCreate)                                                                                \
  CALL(cudnnDestroy)                                                                               \
  CALL(cudnnSetStream)                                                                             \
  CALL(cudnnCreateTensorDescriptor)                                                                \
  CALL(cudnnSetTensorNdDescriptor)                                                                 \
  CALL(cudnnDestroyTensorDescriptor)                                                               \
  CALL(cudnnCreateFilterDescriptor)                                                                \
  CALL(cudnnSetFilterNdDescriptor)                                                                 \
  CALL(cudnnDestroyFilterDescriptor)                                                               \
  CALL(cudnnCreateConvolutionDescriptor)                                                           \
  CALL(cudnnSetConvolutionNdDescriptor)                                                            \
  CALL(cudnnSetConvolutionGroupCount)                                                              \
  CALL(cudnnSetConvolutionMathType)                                                                \
  CALL(cudnnDestroyConvolutionDescriptor)                                                          \
  CALL(cudnnGetConvolutionForwardAlgorithm_v7)                                                     \
  CALL(cudnnGetConvolutionForwardWorkspaceSize)                                                    \
  CALL(cudnnConvolutionForward)                                                                    \
  CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                \
  CALL(cudnnGetConvolutionBackwardDataWorkspaceSize)                                               \
  CALL(cudnnConvolutionBackwardData)                                                               \
  CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                              \
  CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                             \
  CALL(cudnnConvolutionBackwardFilter)
// NOLINTEND(bugprone-macro-parentheses)

struct cudnn_calls {
#define CUDNN_POINTER(name) decltype(&::name) name = nullptr;
  FOR_CUDNN_CALLS(CUDNN_POINTER)
#undef CUDNN_POINTER
};

// Null where the library, or one of the functions, is not found; `missing` then says what.
const cudnn_calls *find_cudnn_calls(std::string &missing);

} // namespace trainc
