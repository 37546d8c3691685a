// SPDX-License-Identifier: Apache-2.0
//
// ONNX Tile: a broadcast along a new dimension before each, then joined.
#include "dialects/nn/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importTile(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto repeats = node.integers(1);
  if (!repeats)
    return node.refuseUnknown(1, "repeats");
  if (repeats->size() != shape.size())
    return node.error("it has " + llvm::Twine(repeats->size()) + " repeats for " +
                      llvm::Twine(shape.size()) + " dimensions");
  SmallVector<int64_t> dimensions, repeated, joined;
  for (auto [i, count] : llvm::enumerate(*repeats)) {
    dimensions.push_back(repeated.size() + 1);
    repeated.append({count, shape[i]});
  }
  if (failed(countElements(node, repeated)))
    return failure();
  for (auto [count, size] : llvm::zip_equal(*repeats, shape))
    joined.push_back(count * size);
  Builder &builder = node.builder();
  return SmallVector<Value>{builder.reshape(builder.broadcast(x, dimensions, repeated), joined)};
}

static OnnxRegistration tile("Tile", 6, importTile);

} // namespace trainc::nn
