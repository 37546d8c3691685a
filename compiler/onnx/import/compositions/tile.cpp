// SPDX-License-Identifier: Apache-2.0
//
// ONNX Tile: a broadcast along a new dimension before each, then joined.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importTile(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  auto repeats = node.integers(1);
  if (repeats->size() != shape.size())
    return node.error("it has " + llvm::Twine(repeats->size()) + " repeats for " +
                      llvm::Twine(shape.size()) + " dimensions");
  SmallVector<int64_t> dimensions, repeated, joined;
  for (auto [i, count] : llvm::enumerate(*repeats)) {
    if (count < 0 || count > kLargestTensor / std::max<int64_t>(shape[i], 1))
      return node.error("repeats dimension " + llvm::Twine(i) + " (of size " +
                        llvm::Twine(shape[i]) + ") " + llvm::Twine(count) +
                        (count < 0 ? " times, expected 0 or more"
                                   : " times, above the largest tensor, 2^40 elements"));
    dimensions.push_back(repeated.size() + 1);
    repeated.append({count, shape[i]});
    joined.push_back(count * shape[i]);
  }
  if (failed(countElements(node, joined)))
    return failure();
  Builder &builder = node.builder();
  return SmallVector<Value>{builder.reshape(builder.broadcast(x, dimensions, repeated), joined)};
}

static OnnxRegistration tile = OnnxRegistration("Tile", 6, importTile).mustKnow(1, "repeats");

} // namespace trainc::nn
