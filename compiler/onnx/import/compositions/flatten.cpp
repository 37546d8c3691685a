// SPDX-License-Identifier: Apache-2.0
//
// ONNX Flatten: two dimensions, those before an axis and those from it on.
#include "dialects/nn/onnx/onnx_node.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importFlatten(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t rank = shape.size(), axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return node.error("axis " + llvm::Twine(axis) + " is out of range for rank " +
                      llvm::Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  int64_t sizes[] = {1, 1};
  for (int64_t i = 0; i < rank; ++i)
    sizes[i >= axis] *= shape[i];
  return SmallVector<Value>{node.builder().reshape(x, sizes)};
}

static OnnxRegistration flatten("Flatten", 1, importFlatten);

} // namespace trainc::nn
