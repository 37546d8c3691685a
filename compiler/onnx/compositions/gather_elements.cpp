// SPDX-License-Identifier: Apache-2.0
//
// ONNX GatherElements with known indices: a gather of single elements.
#include "compiler/onnx/compositions/known_indices.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importGatherElements(OnnxNode &node) {
  Value x = node.input(0);
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  Tensor indices = node.constant(1);
  int64_t rank = shape.size(), axis = node.integer("axis", 0);
  axis = axis < 0 ? axis + rank : axis;
  if (!indices || indices.type().getRank() != rank || axis < 0 || axis >= rank)
    return node.error("its indices must be known when the model is compiled and have the rank of "
                      "its operand, " +
                      llvm::Twine(rank));
  SmallVector<int64_t> strides = computeStrides(indices.shape());
  std::vector<int64_t> elements = indices.integers();
  for (auto [i, element] : llvm::enumerate(elements)) {
    SmallVector<int64_t> tuple;
    for (int64_t d = 0; d < rank; ++d)
      tuple.push_back(d == axis ? element : int64_t(i) / strides[d] % indices.shape()[d]);
    auto place = rowOf(tuple, shape);
    if (!place)
      return node.error("index " + llvm::Twine(element) + " is out of range");
    element = *place;
  }
  Value flat = node.builder().reshape(x, tensorType(x).getNumElements());
  return SmallVector<Value>{gatherRows(node, flat, elements, indices.shape())};
}

static OnnxRegistration gatherElements("GatherElements", 11, importGatherElements);

} // namespace trainc::nn
