// SPDX-License-Identifier: Apache-2.0
//
// ONNX ReduceProd: halves of each dimension multiplied, until one element is left.
#include "dialects/nn/reduction.h"

using namespace mlir;

namespace trainc::nn {

static Value productAlong(Builder &builder, Value x, int64_t dimension) {
  int64_t size = tensorType(x).getDimSize(dimension);
  while (size > 1) {
    int64_t half = size / 2;
    Value front = builder.slice(x, dimension, 0, half);
    Value product = builder.mul(front, builder.slice(x, dimension, half, half));
    Value parts[] = {product, x};
    if (size % 2)
      parts[1] = builder.slice(x, dimension, size - 1, 1);
    x = size % 2 ? builder.create<ConcatOp>(ValueRange(parts), dimension) : product;
    size = half + size % 2;
  }
  if (size == 1)
    return x;
  SmallVector<int64_t> shape(tensorType(x).getShape()); // of no elements
  shape[dimension] = 1;
  return builder.constant(1, tensorType(x).clone(shape));
}

static OnnxResults importReduceProd(OnnxNode &node) {
  return importReduction(node, 18, [](Builder &builder, Value x, ArrayRef<int64_t> dimensions) {
    SmallVector<int64_t> kept;
    for (int64_t dimension = 0; dimension < tensorType(x).getRank(); ++dimension)
      if (!llvm::is_contained(dimensions, dimension))
        kept.push_back(tensorType(x).getDimSize(dimension));
    for (int64_t dimension : dimensions)
      x = productAlong(builder, x, dimension);
    return builder.reshape(x, kept);
  });
}

static OnnxRegistration reduceProd("ReduceProd", 1, importReduceProd);

} // namespace trainc::nn
