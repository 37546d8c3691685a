// SPDX-License-Identifier: Apache-2.0
//
// ONNX AffineGrid: where the elements of an image or a volume, -1 to 1 along each dimension, come
// to lie by a matrix for each sample; coordinates in the order x, y, z.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

// The elements of dimension `dimension` of `shape`, as places from -1 to 1: their centres, or from
// the first one's to the last one's. A single one is in the middle.
static Value places(Builder &builder, RankedTensorType type, int64_t dimension,
                    bool alignsCorners) {
  auto size = static_cast<double>(type.getDimSize(dimension));
  if (size == 1)
    return builder.constant(0, type);
  Value fromMiddle = builder.scale(builder.create<IotaOp>(type, dimension), 2);
  fromMiddle = builder.add(fromMiddle, builder.constant(1 - size, type));
  return builder.div(fromMiddle, builder.constant(alignsCorners ? size - 1 : size, type));
}

static OnnxResults importAffineGrid(OnnxNode &node) {
  Builder &builder = node.builder();
  Value theta = node.input(0);
  auto type = tensorType(theta);
  auto size = node.integers(1);
  if (!size || (size->size() != 4 && size->size() != 5))
    return node.error("its size is not [N, C, H, W] or [N, C, D, H, W]");
  int64_t space = size->size() - 2, batch = (*size)[0];
  if (!isa<FloatType>(type.getElementType()) ||
      type.getShape() != ArrayRef({batch, space, space + 1}))
    return node.error("its matrices are not floats [" + llvm::Twine(batch) + ", " +
                      llvm::Twine(space) + ", " + llvm::Twine(space + 1) + "]");
  SmallVector<int64_t> shape{batch};
  llvm::append_range(shape, ArrayRef(*size).drop_front(2));
  shape.push_back(space);
  FailureOr<int64_t> count = countElements(node, shape);
  if (failed(count))
    return failure();
  if (*count < 1)
    return node.error("its size has no elements");
  RankedTensorType result = type.clone(shape);
  bool alignsCorners = node.integer("align_corners", 0) != 0;
  auto column = [&](int64_t index) {
    Value numbers = builder.reshape(builder.slice(theta, 2, index, 1), {batch, space});
    return builder.broadcast(numbers, {0, space + 1}, shape);
  };
  Value grid = column(space);
  for (int64_t axis = 0; axis < space; ++axis) { // x is the last dimension of the image
    Value place = places(builder, result, space - axis, alignsCorners);
    grid = builder.add(grid, builder.mul(column(axis), place));
  }
  return SmallVector<Value>{grid};
}

static OnnxRegistration affineGrid =
    OnnxRegistration("AffineGrid", 20, importAffineGrid, settingsFrom<1>).mustKnow(1, "size");

} // namespace trainc::nn
