// SPDX-License-Identifier: Apache-2.0
//
// The two readings of ONNX's softmax operators, common to Softmax and LogSoftmax.
#pragma once

#include "dialects/nn/onnx_node.h"

namespace trainc::nn {

inline mlir::FailureOr<int64_t> softmaxAxis(OnnxNode &node, int64_t otherwise) {
  int64_t rank = tensorType(node.input(0)).getRank(), axis = node.integer("axis", otherwise);
  if (axis < -rank || axis >= rank)
    return node.error("axis " + llvm::Twine(axis) + " is out of range for rank " +
                      llvm::Twine(rank));
  return axis < 0 ? axis + rank : axis;
}

/// Below opset 13: dimensions from `axis` on are flattened into one row.
template <typename Op> OnnxResults importSoftmaxTogether(OnnxNode &node) {
  auto axis = softmaxAxis(node, 1);
  if (mlir::failed(axis))
    return mlir::failure();
  mlir::Value x = node.input(0);
  llvm::ArrayRef<int64_t> shape = tensorType(x).getShape();
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
  auto axis = softmaxAxis(node, -1);
  if (mlir::failed(axis))
    return mlir::failure();
  mlir::Value x = node.input(0);
  int64_t rank = tensorType(x).getRank();
  auto swapped = llvm::to_vector(llvm::seq(rank));
  std::swap(swapped[*axis], swapped.back()); // its own inverse
  Builder &builder = node.builder();
  mlir::Value y = builder.create<Op>(builder.transpose(x, swapped));
  return llvm::SmallVector<mlir::Value>{builder.transpose(y, swapped)};
}

} // namespace trainc::nn
