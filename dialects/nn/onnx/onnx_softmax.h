// SPDX-License-Identifier: Apache-2.0
//
// The two readings of ONNX's softmax operators, common to Softmax and LogSoftmax.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// Below opset 13: dimensions from `axis` on are flattened into one row.
template <typename Op> OnnxResults importSoftmaxTogether(OnnxNode &node) {
  mlir::Value x = node.input(0);
  llvm::ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto axis = axisOf(node, shape.size(), 1);
  if (mlir::failed(axis))
    return mlir::failure();
  llvm::SmallVector<int64_t> flat(shape.take_front(*axis));
  flat.push_back(1);
  for (int64_t size : shape.drop_front(*axis))
    flat.back() *= size;
  Builder &builder = node.builder();
  mlir::Value y = builder.create<Op>(builder.reshape(x, flat));
  return llvm::SmallVector<mlir::Value>{builder.reshape(y, shape)};
}

/// From opset 13 on: along one dimension.
template <typename Op> OnnxResults importSoftmaxAlongAxis(OnnxNode &node) {
  mlir::Value x = node.input(0);
  int64_t rank = tensorType(x).getRank();
  auto axis = axisOf(node, rank, -1);
  if (mlir::failed(axis))
    return mlir::failure();
  auto swapped = llvm::to_vector(llvm::seq(rank));
  std::swap(swapped[*axis], swapped.back()); // its own inverse
  Builder &builder = node.builder();
  mlir::Value y = builder.create<Op>(builder.transpose(x, swapped));
  return llvm::SmallVector<mlir::Value>{builder.transpose(y, swapped)};
}

} // namespace trainc::nn
