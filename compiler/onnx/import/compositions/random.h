// SPDX-License-Identifier: Apache-2.0
//
// What ONNX's random operators draw. An attribute `seed` does not matter: the numbers follow from
// the trainer's --seed, so that each step and micro-batch has others.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::nn {

/// Random integers of [0, 2^bits) in a tensor of the given shape. A node may draw twice.
inline mlir::Value randomBits(OnnxNode &node, llvm::ArrayRef<int64_t> shape, int64_t bits,
                              int64_t draw = 0) {
  Builder &builder = node.builder();
  auto type = mlir::RankedTensorType::get(shape, builder.op().getI64Type());
  return builder.named(
      "random", builder.create<RandomBitsOp>(type, mlir::Value(), 2 * node.number() + draw, bits));
}

/// Uniform random numbers of [0, 1), multiples of the spacing of the type's numbers below 1.
inline mlir::Value randomUniform(OnnxNode &node, mlir::RankedTensorType type, int64_t draw = 0) {
  Builder &builder = node.builder();
  auto element = mlir::cast<mlir::FloatType>(type.getElementType());
  int64_t bits = element.getFPMantissaWidth();
  mlir::Value integers = randomBits(node, type.getShape(), bits, draw);
  return builder.scale(builder.cast(integers, element), std::ldexp(1.0, static_cast<int>(-bits)));
}

} // namespace trainc::nn
