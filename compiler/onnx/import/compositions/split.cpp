// SPDX-License-Identifier: Apache-2.0
//
// ONNX Split: one slice per output. Sizes are an attribute below opset 13, an input from
// there on; equal parts, the last one smaller, where neither is there.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importSplit(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t rank = shape.size(), parts = node.numOutputs();
  FailureOr<int64_t> found = axisOf(node, rank, 0);
  if (failed(found))
    return failure();
  int64_t axis = *found, size = shape[axis], chunk = (size + parts - 1) / parts;
  auto sizes = node.hasInput(1) ? node.integers(1) : node.integers("split");
  if (!sizes) {
    sizes.emplace();
    for (int64_t i = 0; i < parts; ++i)
      sizes->push_back(std::max<int64_t>(0, std::min(chunk, size - i * chunk)));
  }
  if (static_cast<int64_t>(sizes->size()) != parts)
    return node.error("has " + llvm::Twine(sizes->size()) + " sizes for " + llvm::Twine(parts) +
                      " outputs");
  int64_t start = 0;
  SmallVector<Value> results;
  for (int64_t length : *sizes) {
    if (length < 0 || length > size - start)
      break;
    results.push_back(node.builder().slice(x, axis, start, length));
    start += length;
  }
  if (static_cast<int64_t>(results.size()) != parts || start != size)
    return node.error("sizes are negative or do not sum to " + llvm::Twine(size));
  return results;
}

static OnnxRegistration split = OnnxRegistration("Split", 2, importSplit).mustKnow(1, "sizes");

} // namespace trainc::nn
