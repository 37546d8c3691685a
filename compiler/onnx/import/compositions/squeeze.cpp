// SPDX-License-Identifier: Apache-2.0
//
// ONNX Squeeze and Unsqueeze: sizes of 1 dropped or added. Axes are an attribute below
// opset 13, an input from there on.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static std::optional<SmallVector<int64_t>> axesOf(OnnxNode &node) {
  return node.hasInput(1) ? node.integers(1) : node.integers("axes");
}

// The axes in range as a mask over `rank`; nullopt where one is out of range or named twice.
static std::optional<SmallVector<bool>> maskOf(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<bool> mask(rank, false);
  for (int64_t axis : axes) {
    if (axis < -rank || axis >= rank || std::exchange(mask[axis < 0 ? axis + rank : axis], true))
      return std::nullopt;
  }
  return mask;
}

static OnnxResults importUnsqueeze(OnnxNode &node) {
  auto axes = axesOf(node);
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto mask = maskOf(*axes, shape.size() + axes->size());
  if (!mask)
    return node.error("axes are out of range for rank " + llvm::Twine(shape.size() + axes->size()) +
                      " or named twice");
  SmallVector<int64_t> result;
  for (bool added : *mask) {
    result.push_back(added ? 1 : shape.front());
    shape = added ? shape : shape.drop_front();
  }
  return SmallVector<Value>{node.builder().reshape(x, result)};
}

static OnnxResults importSqueeze(OnnxNode &node) {
  auto axes = axesOf(node);
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto mask = maskOf(axes.value_or(SmallVector<int64_t>()), shape.size());
  if (!mask)
    return node.error("axes are out of range for rank " + llvm::Twine(shape.size()) +
                      " or named twice");
  SmallVector<int64_t> result;
  for (auto [size, dropped] : llvm::zip(shape, *mask)) {
    if (dropped && size != 1)
      return node.error("cannot drop a dimension of size " + llvm::Twine(size));
    if (axes ? !dropped : size != 1)
      result.push_back(size);
  }
  return SmallVector<Value>{node.builder().reshape(x, result)};
}

static OnnxRegistration unsqueeze =
    OnnxRegistration("Unsqueeze", 1, importUnsqueeze).mustKnow(1, "axes");
static OnnxRegistration squeeze = OnnxRegistration("Squeeze", 1, importSqueeze).mustKnow(1, "axes");

} // namespace trainc::nn
